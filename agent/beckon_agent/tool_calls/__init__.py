"""The calls of a model: inspected, made as CloudEvents, and their answers read.

`prepared` says which calls may be made, `caller` makes them; `dispatch` picks the way, which is
`through_shim` or `direct`. Nothing here knows the loop of a run or a face.
"""
