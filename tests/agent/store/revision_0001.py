"""The tables of revision 0001 as they were: what a database of that version holds."""

import sqlalchemy as sa
from alembic import op

_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def create_tables() -> None:
    """Create the tables, each after those it refers to."""
    _create_conversations()
    _create_runs()
    _create_turns()
    _create_calls()
    _create_limits()


def _create_conversations() -> None:
    op.create_table(
        "segments",
        sa.Column("id", _COUNTED, primary_key=True),
        sa.Column("parent", _COUNTED, sa.ForeignKey("segments.id")),
        sa.Column("input", sa.Text, nullable=False),
        sa.Column("added", sa.Text, nullable=False),
        sa.Column("opening", sa.Text),
        sa.Column("said", sa.Text),
    )
    op.create_index("ix_segments_parent", "segments", ["parent"])
    op.create_table(
        "conversations",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("metadata", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("head", _COUNTED, sa.ForeignKey("segments.id"), nullable=False),
        sa.Column("used_at", sa.Double, nullable=False, server_default="0"),
    )
    op.create_index("ix_conversations_head", "conversations", ["head"])
    op.create_index("ix_conversations_used", "conversations", ["owner", "used_at", "id"])


def _create_runs() -> None:
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
        sa.Column("retained", sa.Boolean, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
        sa.Column("ending", sa.Text),
        sa.Column("usage", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("holder", sa.Text),
        sa.Column("held_until", sa.Double),
        sa.Column("worked", sa.Double, nullable=False, server_default="0"),
        sa.Column("since", sa.Double),
        sa.Column("lost", sa.Integer, nullable=False, server_default="0"),
        sa.Column("segment", _COUNTED, sa.ForeignKey("segments.id"), nullable=False),
        sa.Column("takeovers", sa.Integer),
        sa.Column("taken_over_at", sa.Double),
    )
    op.create_index("ix_runs_owner", "runs", ["owner", "created_at", "id"])
    op.create_index("ix_runs_segment", "runs", ["segment"])
    _create_partial_index("ix_runs_under_way", "runs", ["status", "created_at"], "ended_at IS NULL")
    _create_partial_index("ix_runs_holder", "runs", ["holder"], "holder IS NOT NULL")
    _create_partial_index("ix_runs_ended_at", "runs", ["ended_at"], "ended_at IS NOT NULL")
    _create_partial_index("ix_runs_conversation", "runs", ["conversation"], "conversation IS NOT NULL")
    op.create_table(
        "events",
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("event", sa.Text, nullable=False),
    )


def _create_turns() -> None:
    op.create_table(
        "turns",
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("step", sa.Integer, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("reasoning", sa.Text, nullable=False),
        sa.Column("finish_reason", sa.Text),
        sa.Column("usage", sa.Text),
        sa.Column("sent", sa.Text),
        sa.Column("written", sa.Text),
        sa.Column("prompt", sa.Text),
        sa.Column("seconds", sa.Double),
        sa.Column("ended_at", sa.Double),
    )
    op.create_table(
        "materials",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("used_at", sa.Double, nullable=False),
    )
    op.create_index("ix_materials_used_at", "materials", ["used_at"])


def _create_calls() -> None:
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
        sa.Column("tokens", sa.Integer, nullable=False, server_default="0"),
        sa.Column("deadline", sa.Double),
        sa.Column("decision", sa.Text),
        sa.Column("decided_by", sa.Text),
        sa.Column("decision_reason", sa.Text),
        sa.Column("attempts", sa.Integer),
        sa.Column("sent_at", sa.Double),
        sa.Column("finished_at", sa.Double),
        sa.Column("decided_at", sa.Double),
        sa.Column("deliveries", sa.Integer),
        sa.Column("call_event", sa.Text),
        sa.Column("reply_event", sa.Text),
        sa.Column("report", sa.Text),
        sa.Column("origin", sa.Text, nullable=False, server_default="api"),
        sa.Column("due", sa.Double),
        sa.UniqueConstraint("run_id", "step", "number", name="uq_calls_place"),
    )
    _create_partial_index("ix_calls_deadline", "calls", ["state", "deadline"], "deadline IS NOT NULL")
    _create_partial_index("ix_calls_approval", "calls", ["run_id"], "state = 'approval'")


def _create_limits() -> None:
    op.create_table(
        "limit_buckets",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("bucket", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("last_used", sa.Double, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
        sa.Column("amount", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "limit_places",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("token", sa.Text, primary_key=True),
        sa.Column("expires", sa.Double, nullable=False),
    )
    op.create_table(
        "limit_reservations",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("token", sa.Text, primary_key=True),
        sa.Column("amount", sa.BigInteger, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
    )
    for table in ("limit_buckets", "limit_places", "limit_reservations"):
        op.create_index(f"ix_{table}_expires", table, ["expires"])


def _create_partial_index(name: str, table: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)
