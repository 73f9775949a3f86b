"""Judges EventTypes: the spec and conditions of their Tools.

All input is objects in memory. Nothing here reads or writes the cluster, and nothing here knows the time.
"""
