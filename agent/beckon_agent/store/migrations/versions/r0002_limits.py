"""The use of limits."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "limit_buckets",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("bucket", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("last_used", sa.Double, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_limit_buckets_expires", "limit_buckets", ["expires"])
    op.create_table(
        "limit_places",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("token", sa.Text, primary_key=True),
        sa.Column("expires", sa.Double, nullable=False),
    )
    op.create_index("ix_limit_places_expires", "limit_places", ["expires"])
