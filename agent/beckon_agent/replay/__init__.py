"""A stored run played again: by the engine and the loop of today, with the model and the tools as recorded.

`recording` reads a run with all that is kept of it, `model` and `caller` answer from it, `playing` lets a
private engine run with them over a store that is thrown away, and `comparing` holds the two recordings side
by side. `live` makes the calls for real beside that. `replayer` is what a face starts. No HTTP here.
"""
