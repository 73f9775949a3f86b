"""MCP at `/mcp` and `/mcp/{agent}`: an agent's tools for every MCP client, by the official SDK.

No session is kept. The SDK is imported with the first request: only `protocol` and `call` may import it.
"""
