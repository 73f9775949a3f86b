"""The agents: their models, keys and tools, from the API server (`kubernetes`) or folders (`folder`).

Only the modules named after Kubernetes know it; the rest sees a registry and catalogues.
"""
