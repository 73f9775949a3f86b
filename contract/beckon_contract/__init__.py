"""The shared language of Beckon's rooms.

Here belongs what two rooms must agree on: EventTypes as tools, tool calls as
CloudEvents, correlation tokens, Trigger filters. Everything is pure: no files,
no sockets, no clock that is not passed in. What only one room uses stays there.
"""
