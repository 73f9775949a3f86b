"""Who asks, and what they may do: API keys, OIDC tokens, and what the Agents' rules allow a principal.

No HTTP lives here but the fetching of an issuer's keys: `faces.access` asks the `Authenticator`, and
answers where it refuses. Faces find agents and tools through the `PermittedRoster`.
"""
