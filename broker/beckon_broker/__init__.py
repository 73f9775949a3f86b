"""The embedded broker: Knative's Broker and Trigger semantics in one process, in memory.

It accepts at once (202) and delivers in the background, as Knative's Kafka broker does, and
without any order. What is queued when the process ends is lost. It sends no OIDC tokens
(`audience`) and trusts the system's certificates only (`CACerts` is not read).
"""
