"""The HTTP API: each route turns its requests into runs of the one loop."""
