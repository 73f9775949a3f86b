"""Authentication and authorization: API keys, OIDC tokens, rules of the Agents, policies and quotas.

The only HTTP here fetches an issuer's keys: `api.access` calls the `Authenticator`, and answers where it
refuses. Routes find agents and tools through `PermittedAgents`.
"""
