"""Stored runs: lists, steps, events, and calls waiting for approval.

Runs are started by the routes of the other protocols.
"""
