"""Outcomes of calls in databases: one effect for a call, however often it is delivered.

A ledger is the interface to one kind of database, for the replicas of a tool; `shared` uses it. `record`
is the outcome in the tool's own database, written by the transaction that has the effect.
"""
