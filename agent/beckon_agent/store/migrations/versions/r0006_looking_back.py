"""Data for the history: times, exchanged events, first questions, search text."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add columns and indexes; earlier steps have no values.

    The search does not find earlier messages.
    """
    for name in ("seconds", "ended_at"):
        op.add_column("turns", sa.Column(name, sa.Double))
    op.add_column("calls", sa.Column("attempts", sa.Integer))
    for name in ("sent_at", "finished_at", "decided_at"):
        op.add_column("calls", sa.Column(name, sa.Double))
    for name in ("call_event", "reply_event"):
        op.add_column("calls", sa.Column(name, sa.Text))
    op.add_column("runs", sa.Column("takeovers", sa.Integer))
    op.add_column("runs", sa.Column("taken_over_at", sa.Double))
    for name in ("opening", "said"):
        op.add_column("segments", sa.Column(name, sa.Text))
    op.create_index("ix_runs_owner", "runs", ["owner", "created_at", "id"])
    op.create_index("ix_conversations_owner", "conversations", ["owner", "created_at", "id"])
    _partial_index("ix_runs_conversation", "runs", "conversation", "conversation IS NOT NULL")
    _partial_index("ix_calls_approval", "calls", "run_id", "state = 'approval'")


def _partial_index(name: str, table: str, column: str, condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, [column], sqlite_where=where, postgresql_where=where)
