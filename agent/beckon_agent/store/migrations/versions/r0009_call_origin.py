"""The origin of a call.

It is the API, a text dialect, or the recovery from an answer's text.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column; earlier calls count as calls of the API."""
    op.add_column("calls", sa.Column("origin", sa.Text, nullable=False, server_default="api"))
