"""Measurements, each a command that prints a table."""
