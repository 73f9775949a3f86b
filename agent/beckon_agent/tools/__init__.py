"""Where the agent's tools come from: one small interface, and its sources.

A source keeps a `Catalogue` up to date; the loop asks for it before every model
request, so a new EventType is declared without a restart.
"""
