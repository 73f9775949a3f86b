"""Tool calls: validated, sent as CloudEvents, and their outcomes.

`validation` decides which calls are made, `caller` makes them, over `broker` or `direct`. `checkpoint` is the
protocol by which a run stores its steps. Nothing here knows the loop or a route.
"""
