"""The store: runs with their steps and calls, conversations, approvals, and the use of limits.

`base` holds the protocols, and `core.records` their records; users of the store import nothing else of this
package.
"""
