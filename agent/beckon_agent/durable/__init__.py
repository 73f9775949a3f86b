"""Durable runs: stored stepwise, held by one replica, resumed by any.

`base` is the interface for routes.
"""
