"""From the tools of an MCP server to EventTypes, Triggers and rules for the bridge.

`reading` asks the server, `tools` decides what each becomes, `bridge` is the Service of a server that is a
command, `recipe` and `project` its image. Nothing here knows the command line.
"""
