"""The broker: Knative's Broker and Trigger semantics, on a laptop and for the class Beckon of a cluster.

It stores an event, accepts it at once (202), and delivers it in the background, as Knative's Kafka broker
does. `memory_log` loses its events when the process ends; `jetstream` keeps them. The broker sends no OIDC
tokens, and trusts the certificates of its system alone: what a destination says of its audience and
certificates is not read.
"""
