"""When the reply to a call is due that was posted: for who takes its run over, and must not post it again."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Make room for it."""
    op.add_column("calls", sa.Column("due", sa.Double))
