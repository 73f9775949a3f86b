"""A stored run replayed by today's engine with the recorded model and tools.

`recording` reads a run with everything stored of it, and `player` runs a private engine over a temporary
store. The model and the tools of that run are in `callers`: they answer as recorded, or make the calls for
real. `compare` compares the two recordings. No HTTP here.
"""
