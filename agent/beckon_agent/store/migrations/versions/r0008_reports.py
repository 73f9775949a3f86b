"""How far a call is that its tool has taken, to answer it later: the last report of it."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Make room for it."""
    op.add_column("calls", sa.Column("report", sa.Text))
