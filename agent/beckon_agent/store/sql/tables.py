"""The schema, as the newest revision in `store.migrations` leaves it; a test compares the two.

Messages are not kept with their run but in `segments`: each holds what one run added to a conversation, and
stands behind the segment that came before it. `opening` is how its first question begins, and `said` what
both sides said, as it is searched. So a run shares its past with all that follow the same one,
and can be deleted while they keep it. A segment that no run, conversation or later segment needs is deleted.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    UniqueConstraint,
)

from beckon_agent.store.sql.columns import Document, Word

metadata = MetaData()

# SQLite counts only what is called INTEGER.
_COUNTED = BigInteger().with_variant(Integer(), "sqlite")


def _partial_index(name: str, *columns: Column[Any], where: ColumnElement[bool]) -> None:
    """Index the rows of a condition; naming the option of PostgreSQL here would load its dialect."""
    Index(name, *columns, sqlite_where=where, info={"where": where})


segments = Table(
    "segments",
    metadata,
    Column("id", _COUNTED, primary_key=True),
    Column("parent", _COUNTED, ForeignKey("segments.id"), index=True),
    Column("input", Document, nullable=False),
    Column("added", Document, nullable=False),
    Column("opening", Word),
    Column("said", Word),
)

conversations = Table(
    "conversations",
    metadata,
    Column("id", Word, primary_key=True),
    Column("owner", Word, nullable=False),
    Column("metadata", Document, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("head", _COUNTED, ForeignKey("segments.id"), nullable=False, index=True),
    Column("used_at", Double, nullable=False, server_default="0"),
    Index("ix_conversations_used", "owner", "used_at", "id"),
    Index("ix_conversations_owner", "owner", "created_at", "id"),  # for replicas of before revision 8
)

runs = Table(
    "runs",
    metadata,
    Column("id", Word, primary_key=True),
    Column("owner", Word, nullable=False),
    Column("agent", Word, nullable=False),
    Column("face", Word, nullable=False),
    Column("request", Document, nullable=False),
    Column("previous", Word),
    Column("conversation", Word),
    Column("background", Boolean, nullable=False),
    Column("kept", Boolean, nullable=False),
    Column("status", Word, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("ending", Word),
    Column("usage", Document),
    Column("error", Document),
    Column("holder", Word),
    Column("held_until", Double),
    Column("worked", Double, nullable=False, server_default="0"),
    Column("since", Double),
    Column("lost", Integer, nullable=False, server_default="0"),
    Column("segment", _COUNTED, ForeignKey("segments.id"), nullable=False, index=True),
    Column("takeovers", Integer),
    Column("taken_over_at", Double),
    Index("ix_runs_owner", "owner", "created_at", "id"),
)
_partial_index("ix_runs_under_way", runs.c.status, runs.c.created_at, where=runs.c.ended_at.is_(None))
_partial_index("ix_runs_holder", runs.c.holder, where=runs.c.holder.is_not(None))
_partial_index("ix_runs_ended_at", runs.c.ended_at, where=runs.c.ended_at.is_not(None))
_partial_index("ix_runs_conversation", runs.c.conversation, where=runs.c.conversation.is_not(None))

turns = Table(
    "turns",
    metadata,
    Column("run_id", Word, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("text", Word, nullable=False),
    Column("reasoning", Word, nullable=False),
    Column("finish_reason", Word),
    Column("usage", Document),
    Column("sent", Document),
    Column("written", Document),
    Column("asked", Document),
    Column("seconds", Double),
    Column("ended_at", Double),
)

calls = Table(
    "calls",
    metadata,
    Column("event_id", Word, primary_key=True),
    Column("run_id", Word, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("step", Integer, nullable=False),
    Column("number", Integer, nullable=False),
    Column("id", Word, nullable=False),
    Column("name", Word, nullable=False),
    Column("arguments", Document, nullable=False),
    Column("extra", Document, nullable=False),
    Column("state", Word, nullable=False),
    Column("result", Document),
    Column("failed", Boolean, nullable=False),
    Column("seconds", Double),
    Column("tokens", Integer, nullable=False, server_default="0"),
    Column("deadline", Double),
    Column("decision", Word),
    Column("decided_by", Word),
    Column("decision_reason", Word),
    Column("attempts", Integer),
    Column("sent_at", Double),
    Column("finished_at", Double),
    Column("decided_at", Double),
    Column("deliveries", Integer),
    Column("call_event", Document),
    Column("reply_event", Document),
    Column("report", Document),
    Column("origin", Word, nullable=False, server_default="api"),
    Column("due", Double),
    UniqueConstraint("run_id", "step", "number", name="uq_calls_place"),
)
_partial_index("ix_calls_deadline", calls.c.state, calls.c.deadline, where=calls.c.deadline.is_not(None))
_partial_index("ix_calls_approval", calls.c.run_id, where=calls.c.state == "approval")

events = Table(
    "events",
    metadata,
    Column("run_id", Word, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("event", Document, nullable=False),
)

materials = Table(
    "materials",
    metadata,
    Column("digest", Word, primary_key=True),
    Column("document", Document, nullable=False),
    Column("used_at", Double, nullable=False, index=True),
)

buckets = Table(
    "limit_buckets",
    metadata,
    Column("key", Word, primary_key=True),
    Column("bucket", BigInteger, primary_key=True, autoincrement=False),
    Column("last_used", Double, nullable=False),
    Column("expires", Double, nullable=False, index=True),
    Column("amount", BigInteger, nullable=False),
)

places = Table(
    "limit_places",
    metadata,
    Column("key", Word, primary_key=True),
    Column("token", Word, primary_key=True),
    Column("expires", Double, nullable=False, index=True),
)

reservations = Table(
    "limit_reservations",
    metadata,
    Column("key", Word, primary_key=True),
    Column("token", Word, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    Column("expires", Double, nullable=False, index=True),
)
