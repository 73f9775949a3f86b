"""The due time of the reply to a posted call.

A process that takes the run over needs it: it must not post the call again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the column."""
    op.add_column("calls", sa.Column("due", sa.Double))
