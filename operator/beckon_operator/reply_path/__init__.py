"""The path of replies: the Triggers that bring them to the shim, written for the Brokers that carry calls.

`wanted` computes without I/O what a Broker needs, and `writer` writes what differs. Triggers of others, and
Brokers that carry no calls, stay as they are.
"""
