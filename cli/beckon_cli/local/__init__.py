"""The platform on this machine: a plan of processes, and the supervisor that keeps to it.

In a cluster, controllers give every Service and Broker its address. Here the plan
does, by writing the same `status.address` into generated manifests that the
embedded broker and the agent read beside the user's.
"""
