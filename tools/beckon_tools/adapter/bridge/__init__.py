"""The bridge to MCP servers: a call event becomes `tools/call`, its result the reply.

Here belong the rule of the annotation `beckon.dev/mcp`, the connections to servers, and what their
results become. Imported with the first EventType that needs it: the package `mcp` costs 55 MB.
"""
