"""The chart as Helm renders it, compared with the plain manifests.

These tests need the programs of the cluster and no cluster.
"""
