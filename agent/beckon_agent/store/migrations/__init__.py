"""The schema's history: alembic's revisions, applied by `open_store` before anything else is done.

A revision is never changed once it was released. While replicas are exchanged the old ones work on the new
schema: a revision adds, and what it would take away goes with a later release.
"""

HEAD = "0011"
"""The newest revision."""

VERSION_TABLE = "beckon_schema"
"""Where a database keeps its revision; the name is ours, so that another program's is not mistaken for it."""
