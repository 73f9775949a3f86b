"""Agents as Agent resources describe them: their models, their keys, and what the service's own lends them.

Where the resources come from, an API server or a folder, is not known here.
"""
