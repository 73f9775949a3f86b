"""Outcomes of calls in databases: one effect for a call, however often it is delivered.

A `ledger` is shared by the replicas of a tool, in one of the databases that have a module here. `record` is
the outcome in the tool's own database, written by the transaction that has the effect.
"""
