"""The last progress report of a call to be answered later."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Add the column."""
    op.add_column("calls", sa.Column("report", sa.Text))
