"""The tools sent to the model, with each of its answers."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column; earlier answers have no value."""
    op.add_column("turns", sa.Column("sent", sa.Text))
