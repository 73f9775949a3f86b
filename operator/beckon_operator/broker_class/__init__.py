"""The Broker class Beckon: statuses of its Brokers and their Triggers, as Knative's contract asks.

Nothing here writes to a Broker of another class or to its Triggers. Events do not pass through here: the
broker's pods follow the objects that this package writes.
"""
