"""The agents: their models, keys and tools.

They come from the API server (`kubernetes`) or from folders (`folder`). Only the modules named after
Kubernetes know it; the rest sees a registry and catalogues.
"""
