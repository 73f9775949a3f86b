"""The operator: watches EventTypes, Triggers and Brokers, and writes Tools.

Everything that needs the API server is here: watching, conditions, events, the admission webhook. The meaning
of an EventType is defined by the contract package.
"""
