"""SIGKILL of each part of the platform under load, with either log of the broker.

`python -m tests.faults` runs it for as long as wanted and prints a table; `test_faults` is the small form.
"""
