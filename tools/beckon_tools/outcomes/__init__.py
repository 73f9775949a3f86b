"""Outcomes of calls in databases: one effect, wherever and however often a call is delivered.

A ledger is what one kind of database can do for the replicas of a tool; `shared` says what is done with
it. `record` is the outcome in the tool's own database, written by the transaction that has the effect.
"""
