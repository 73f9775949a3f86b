"""The ways in which models without native tool calling write their calls.

A dialect renders declarations and history into what the model was trained on,
and reads its text back, piece by piece, as text to show and calls to make.
Nothing here does I/O, and nothing evaluates what a model wrote.
"""
