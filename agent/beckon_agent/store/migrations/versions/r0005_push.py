"""Clients may be notified of their runs at an address of theirs."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Create the table; earlier runs have no such address."""
    op.create_table(
        "push_targets",
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("notified", sa.Text, nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("due", sa.Double),
    )
    op.create_index("ix_push_targets_due", "push_targets", ["due"])
