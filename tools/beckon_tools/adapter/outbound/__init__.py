"""The way out of the adapter: which hosts it may call, at which addresses, and with which credentials.

What is here is the owner's to decide, not a rule's: the rest of the adapter reaches no network but
through `Way`.
"""
