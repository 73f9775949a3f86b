"""MCP servers as backends: a call event becomes `tools/call`, its result the reply.

This package has the rule of the annotation `beckon.dev/mcp`, the connections to servers, and the
conversion of their results. It is imported with the first EventType that needs it: the package `mcp`
costs 55 MB.
"""
