"""Reservations of limits by requests without an answer yet."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Create the table; older replicas reserve nothing until they are replaced."""
    op.create_table(
        "limit_reservations",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("token", sa.Text, primary_key=True),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
    )
    op.create_index("ix_limit_reservations_expires", "limit_reservations", ["expires"])
