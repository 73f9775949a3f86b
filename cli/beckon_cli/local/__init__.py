"""The local platform: a plan of processes, and their supervisor.

In a cluster, controllers give every Service and Broker its address. Here the plan
does, by writing the same `status.address` into generated manifests that the
embedded broker and the agent read beside the user's.
"""
