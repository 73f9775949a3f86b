"""The commands, one module each.

The code they share is in the package above.
"""
