"""Durable runs: stored step by step, held by one replica, resumed by any.

`base` is the interface for routes.
"""
