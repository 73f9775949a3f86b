"""Working time of runs, lost processes, and token costs of calls."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the columns; runs in progress count from now on."""
    op.add_column("runs", sa.Column("worked", sa.Double, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("since", sa.Double))
    op.add_column("runs", sa.Column("lost", sa.Integer, nullable=False, server_default="0"))
    op.add_column("calls", sa.Column("tokens", sa.Integer, nullable=False, server_default="0"))
