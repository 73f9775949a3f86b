"""A stored run replayed by today's engine with the recorded model and tools.

`recording` reads a run with everything stored of it, `model` answers from it, `player` runs a private engine
over a temporary store, and `compare` compares the two recordings. `live` makes the calls for real beside
that. No HTTP here.
"""
