"""Answers are stored with their details."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; earlier answers have no details."""
    op.add_column("turns", sa.Column("details", sa.Text))
