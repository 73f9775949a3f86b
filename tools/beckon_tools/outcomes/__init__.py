"""Outcomes of calls that the replicas of a tool share: one effect, wherever a call is delivered.

A ledger is what one kind of database can do; `shared` says what is done with it.
"""
