"""Folders of manifests: read, kept through broken edits, and followed.

For the local mode, where a folder stands in for the API server. Nothing here knows
what the objects in a manifest mean.
"""
