"""Prompts of the model, and its calls as it wrote them.

A run cannot be replayed without them.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add columns and a table; earlier turns have no values."""
    op.add_column("turns", sa.Column("written", sa.Text))
    op.add_column("turns", sa.Column("asked", sa.Text))
    op.create_table(
        "materials",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("used_at", sa.Double, nullable=False),
    )
    op.create_index("ix_materials_used_at", "materials", ["used_at"])
