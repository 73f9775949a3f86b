"""The A2A protocol: each agent with a card, and its stored runs as tasks.

The SDK serves the protocol's bindings; it is imported with the first request of a client, since it costs
a third of a second and 23 MB.
"""
