"""Folders of manifests: read, followed, and preserved through broken edits.

For the local mode, with a folder in place of the API server. Nothing here knows the meaning of the objects
in a manifest.
"""
