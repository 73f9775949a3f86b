"""The store: runs, conversations, approvals, and the use of limits.

Runs are stored with their steps and calls. `base` holds the protocols, and `core.records` their records;
users of the store import nothing else of this package.
"""
