"""Stored runs: lists, the steps of one, its events, and the calls that wait for approval.

These routes read; a run is begun by the routes of the other protocols.
"""
