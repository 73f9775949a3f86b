"""How long a run was worked on, how often a process was lost over it, and what its calls cost elsewhere."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make room for it; runs under way count from now on."""
    op.add_column("runs", sa.Column("worked", sa.Double, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("since", sa.Double))
    op.add_column("runs", sa.Column("lost", sa.Integer, nullable=False, server_default="0"))
    op.add_column("calls", sa.Column("tokens", sa.Integer, nullable=False, server_default="0"))
