"""Import of tools: descriptions of other systems, written as manifests.

Each kind of source has a package of its own, whose `finding` reads it and returns the `candidates`. The
other modules serve every kind of source: `manifests`, `files`, `needs` (settings for the adapter's owner),
`summary`. The modules here read and compute; only `files` writes.
"""
