"""The command line and its local platform.

This package alone imports all the others. `commands` holds one module per command, `local` the platform
on this machine: its processes, their ports and their manifests.
"""
