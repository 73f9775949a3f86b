"""The first tables: `store.sql.open` creates them for a new database, as it does those of every revision.

No database is brought here by Alembic. A test holds them as they were, and upgrades them.
"""

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Do nothing: an older revision there is none."""
