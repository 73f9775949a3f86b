"""Runs that outlive connections and processes: stored step by step, held by one replica, resumed by any.

`base` holds what faces see of it.
"""
