"""Import of tools: descriptions of other systems, written as manifests.

Each kind of source has a package or a module of its own, which reads it and returns the `candidates`. The
other modules are for every kind: `documents` are read from files and URLs, `manifests` makes and writes
files, and `report` compares them with those of the folder, and lists what the adapter's owner has to set.
"""
