"""Runs with their steps, and conversations."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables, each after those it refers to."""
    _messages()
    _runs()
    _steps()


def _messages() -> None:
    op.create_table(
        "segments",
        sa.Column("id", _COUNTED, primary_key=True),
        sa.Column("parent", _COUNTED, sa.ForeignKey("segments.id")),
        sa.Column("input", sa.Text, nullable=False),
        sa.Column("added", sa.Text, nullable=False),
    )
    op.create_index("ix_segments_parent", "segments", ["parent"])
    op.create_table(
        "conversations",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("head", _COUNTED, sa.ForeignKey("segments.id"), nullable=False),
    )
    op.create_index("ix_conversations_head", "conversations", ["head"])


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("face", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("previous", sa.Text),
        sa.Column("conversation", sa.Text),
        sa.Column("background", sa.Boolean, nullable=False),
        sa.Column("kept", sa.Boolean, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
        sa.Column("ending", sa.Text),
        sa.Column("usage", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("holder", sa.Text),
        sa.Column("held_until", sa.Double),
        sa.Column("segment", _COUNTED, sa.ForeignKey("segments.id"), nullable=False),
    )
    op.create_index("ix_runs_segment", "runs", ["segment"])
    _partial_index("ix_runs_under_way", "runs", ["status", "created_at"], "ended_at IS NULL")
    _partial_index("ix_runs_holder", "runs", ["holder"], "holder IS NOT NULL")
    _partial_index("ix_runs_ended_at", "runs", ["ended_at"], "ended_at IS NOT NULL")


def _steps() -> None:
    op.create_table(
        "turns",
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("step", sa.Integer, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("reasoning", sa.Text, nullable=False),
        sa.Column("finish_reason", sa.Text),
        sa.Column("usage", sa.Text),
    )
    op.create_table(
        "calls",
        sa.Column("event_id", sa.Text, primary_key=True),
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("arguments", sa.Text, nullable=False),
        sa.Column("extra", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("result", sa.Text),
        sa.Column("failed", sa.Boolean, nullable=False),
        sa.Column("seconds", sa.Double),
        sa.Column("deadline", sa.Double),
        sa.Column("decision", sa.Text),
        sa.Column("decided_by", sa.Text),
        sa.Column("decision_reason", sa.Text),
        sa.UniqueConstraint("run_id", "step", "number", name="uq_calls_place"),
    )
    _partial_index("ix_calls_deadline", "calls", ["state", "deadline"], "deadline IS NOT NULL")
    op.create_table(
        "events",
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("event", sa.Text, nullable=False),
    )


def _partial_index(name: str, table: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)
