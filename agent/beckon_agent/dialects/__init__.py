"""The markup of tool calls from models without native tool calling.

A dialect renders declarations and history in the form on which the model was trained, and reads its text
back, piece by piece, as text to show and calls to make. Nothing here does I/O, and nothing evaluates the
output of a model.
"""
