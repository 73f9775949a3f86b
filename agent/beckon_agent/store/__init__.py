"""What outlives a process: runs with their steps and calls, conversations, approvals, and what was used.

`records` holds the words, `base` the protocols; whoever uses the store imports nothing else of this package.
"""
