"""Outgoing requests of the adapter: allowed hosts, addresses, credentials.

These are decided by the adapter's owner, not by a rule. The rest of the adapter reaches the network only
through `EgressClient`.
"""
