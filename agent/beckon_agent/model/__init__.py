"""The client of any OpenAI-compatible chat completions server, and the tolerance it needs.

Nothing here knows of Beckon's tools, events or faces: messages and declarations
go in, text and tool calls come out.
"""
