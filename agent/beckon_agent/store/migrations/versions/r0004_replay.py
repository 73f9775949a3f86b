"""What a model was asked, and how it wrote its calls: without them no run can be played again."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Make room for it; turns that are there already stay without."""
    op.add_column("turns", sa.Column("written", sa.Text))
    op.add_column("turns", sa.Column("asked", sa.Text))
    op.create_table(
        "materials",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("used_at", sa.Double, nullable=False),
    )
    op.create_index("ix_materials_used_at", "materials", ["used_at"])
