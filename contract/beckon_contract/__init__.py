"""The shared language of Beckon's rooms.

Here belongs what two rooms must agree on: EventTypes as tools, tool calls as
CloudEvents, correlation tokens, Trigger filters. Everything is pure: no files,
no sockets, no environment, no logs. What only one room uses stays there; the code
common to services is in `beckon_runtime`.
"""
