"""What becomes of every EventType: its Tool's spec and conditions, from objects in memory alone.

Nothing here reads or writes the cluster, and nothing here knows the time.
"""
