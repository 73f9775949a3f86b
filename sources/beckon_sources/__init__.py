"""Folders of manifests and the API server: the objects there, and their changes.

The meaning and the use of the objects do not belong here.
"""
