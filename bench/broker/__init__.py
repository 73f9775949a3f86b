"""Measures the broker: the path of one call through shim, broker and tool, with either log."""
