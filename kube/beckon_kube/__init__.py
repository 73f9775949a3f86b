"""Collections of a Kubernetes API server: listed once, then watched.

The package has the code common to all services that follow Brokers, EventTypes, Tools or Agents, and a
small connection for services without a client of their own. The meaning and the use of the objects do not
belong here.
"""
