"""Calls may wait for input of a person."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the columns and the index of waiting calls; earlier calls have requested no input."""
    op.add_column("calls", sa.Column("input_request", sa.Text))
    op.add_column("calls", sa.Column("input_answer", sa.Text))
    waiting = sa.text("state = 'input'")
    op.create_index("ix_calls_input", "calls", ["run_id"], sqlite_where=waiting, postgresql_where=waiting)
