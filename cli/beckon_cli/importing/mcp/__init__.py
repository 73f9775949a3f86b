"""From the tools of an MCP server to EventTypes, Triggers and rules for the bridge.

`reading` asks the server, `tools` makes EventTypes of its tools, `bridge` is the Service of a server that
is a command, `recipe` and `project` make its image. Nothing here knows the command line.
"""
