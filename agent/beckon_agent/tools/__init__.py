"""The tools of an agent: their source, their availability, and the search among many.

A source keeps a `Catalogue` up to date; the loop reads it before every model request, so a new EventType is
declared without a restart. `bm25` ranks tools, `query` makes search terms of a conversation, and `select`
chooses what a model is sent. No I/O, nothing of routes, runs or stores.
"""
