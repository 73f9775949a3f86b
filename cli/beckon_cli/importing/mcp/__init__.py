"""From the tools of an MCP server to EventTypes, Triggers and rules for the bridge.

`tools` lists them and makes EventTypes of them; `sign_in` is for a server that requires OAuth. For a server
that is a command, `service` is its Service, and `project` makes its image with what `packages` has read.
Nothing here knows the command line.
"""
