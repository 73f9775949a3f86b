"""The agent in a cluster: Tools and Agents as the API server has them, and what becomes of each Agent.

Only this package knows Kubernetes; the rest of the agent sees a `Roster` and catalogues.
"""
