"""Stored runs: lists, steps, events, and calls that wait for approval."""
