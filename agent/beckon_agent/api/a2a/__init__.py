"""The A2A protocol: each agent with a card, and its stored runs as tasks.

The SDK serves the protocol's bindings; it is imported with the first request of a client, since it costs
half a second and 25 MB.
"""
