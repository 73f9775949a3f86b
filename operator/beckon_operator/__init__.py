"""The operator: it watches EventTypes, Triggers and Brokers, and writes what they make as Tools.

Here belongs what needs the API server to be judged or written: watching, conditions, events,
the admission webhook. What an EventType means is the contract's to say.
"""
