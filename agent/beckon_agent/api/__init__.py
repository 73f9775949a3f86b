"""The HTTP shapes that clients speak; each turns its requests into runs of the one loop."""
