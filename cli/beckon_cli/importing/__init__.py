"""Making tools of what exists already: descriptions of other systems, written out as manifests.

Each kind of source has a package of its own, whose `finding` reads it and returns the `candidates`. All
else is the same for all: `manifests`, `files`, `needs` (what the adapter's owner sets), `summary`. What is
here reads and computes; only `files` writes.
"""
