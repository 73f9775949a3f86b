"""Events are stored for MCP clients."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the two tables; no event was stored before."""
    op.create_table(
        "feed",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("type", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("event_id", sa.Text, nullable=False),
        sa.Column("event", sa.Text, nullable=False),
        sa.Column("came_at", sa.Double, nullable=False),
        sa.UniqueConstraint("namespace", "source", "event_id", name="uq_feed_event"),
    )
    op.create_index("ix_feed_type", "feed", ["namespace", "type", "position"])
    op.create_table(
        "feed_starts", sa.Column("position", sa.BigInteger, primary_key=True, autoincrement=False)
    )
