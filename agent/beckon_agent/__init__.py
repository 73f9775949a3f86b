"""The agent: the loop between a model and the tools of a cluster.

`api` has the HTTP APIs for clients, `model` is the client of any OpenAI-compatible server, `dialects` teach
models without native tool calling. The loop in the middle knows none of them by name.
"""
