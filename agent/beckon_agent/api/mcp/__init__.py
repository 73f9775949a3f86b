"""MCP at `/mcp` and `/mcp/{agent}`, by the official SDK.

It offers an agent's tools to every MCP client. No session is stored. The SDK is imported with the first
request: only `protocol` and `call` may import it.
"""
