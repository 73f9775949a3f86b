"""The schema's history: Alembic's revisions, applied by `open_store`.

They are applied before anything else is done. A revision is never changed once it was released. During a
rolling update the old replicas work on the new schema: so a revision only adds, and what it would remove is
removed by a later release.
"""

HEAD = "0006"
"""The newest revision."""

VERSION_TABLE = "beckon_schema"
"""Where a database keeps its revision; the name is ours, so that another program's is not mistaken for it."""
