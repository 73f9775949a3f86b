"""`beckon`: the command line, and the local platform it starts."""
