"""The demo model: a small OpenAI-compatible server, used without a configured model.

It is deterministic and is not a language model; it says so wherever it answers.
The agent speaks to it over HTTP, and neither imports the other.
"""
