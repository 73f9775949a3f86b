"""How a call was obtained: from the API, from a text dialect, or recovered from an answer's text."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column; earlier calls count as calls of the API."""
    op.add_column("calls", sa.Column("origin", sa.Text, nullable=False, server_default="api"))
