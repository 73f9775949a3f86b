"""The shared parts of all routes: limits, streams, errors, OpenAPI."""
