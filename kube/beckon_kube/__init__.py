"""Collections of a Kubernetes API server: read once, then watched, for as long as it takes.

What belongs here: what every service does that follows Brokers, EventTypes, Tools or Agents, and a
small connection for those that bring no client. What the objects mean does not belong here, nor
what is made of them.
"""
