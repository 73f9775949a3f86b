"""Authentication and authorization: keys, tokens, rules, policies and quotas.

Keys are API keys, tokens are of an OIDC issuer, rules and policies are those of the Agents. The only HTTP
here fetches an issuer's keys: `api.access` calls the `Authenticator`, and answers the requests it
refuses. Routes find agents and tools through `PermittedAgents`.
"""
