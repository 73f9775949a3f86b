"""The embedded broker: Knative's Broker and Trigger semantics in one process, in memory."""
