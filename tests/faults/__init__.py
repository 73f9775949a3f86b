"""SIGKILL of each part of the platform under load, with either log of the broker.

`python -m tests.faults` runs it for as long as wanted, prints a table, and ends with 1 where a promise is
broken.
"""
