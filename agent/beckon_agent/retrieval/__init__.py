"""Which tools a model is sent when there are more than it takes, and `find_tools` for the rest.

`words` and `fields` make terms of a tool, `queries` and `conversation` of what was said; `index` ranks by
BM25, `indexes` keeps what that takes; `places` keeps the order, `choice` says who gets a place, `finding`
answers `find_tools`, and `choosing` decides: the loop sees only the last two.
No I/O, nothing of faces, runs or stores.
"""
