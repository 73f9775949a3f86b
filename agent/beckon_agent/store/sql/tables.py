"""The tables of the newest revision in `store.migrations`; a test compares the two.

Messages are not stored with their run but in `segments`: each holds what one run added to a conversation,
and refers to the segment before it. `opening` is the beginning of its first question, and `said` the text of
both sides for the search. So a run shares its past with all runs that follow the same one, and can be deleted
while they keep it. A segment that no run, conversation or later segment needs is deleted.

PostgreSQL's text takes neither NUL nor a lone surrogate, and its jsonb neither, nor does it keep every
number as it was written. So documents are ASCII JSON in a text column, and the rare string with such a
character is escaped.
"""

import json
import re
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeDecorator

_REFUSED = re.compile(r"[\\\x00\ud800-\udfff]")


class SafeText(TypeDecorator[str]):
    """Any string of Python; two different ones stay different."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Escape a string with backslashes or characters refused by a database."""
        if value is None or not _REFUSED.search(value):
            return value
        return value.encode("unicode_escape").decode("ascii")

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the original string. A stored string with a backslash is always an escaped one."""
        if value is None or "\\" not in value:
            return value
        return value.encode("ascii").decode("unicode_escape")


class JsonText(TypeDecorator[Any]):
    """A JSON value with exact numbers, however large; `None` is NULL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: object, dialect: Dialect) -> str | None:
        """Write JSON. Raises `ValueError` for a value that is no JSON, or nested too deeply."""
        if value is None:
            return None
        try:
            return json.dumps(value, separators=(",", ":"))
        except RecursionError:
            raise ValueError("a value is nested too deeply to be stored") from None
        except TypeError as error:
            raise ValueError(f"a value that is no JSON cannot be stored: {error}") from None

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Read the stored JSON."""
        return None if value is None else json.loads(value)


metadata = MetaData()

# SQLite counts only what is called INTEGER.
_COUNTED = BigInteger().with_variant(Integer(), "sqlite")


def _partial_index(name: str, *columns: Column[Any], where: ColumnElement[bool]) -> None:
    """Index the rows matching a condition. Naming the option of PostgreSQL here would load its dialect."""
    Index(name, *columns, sqlite_where=where, info={"where": where})


segments = Table(
    "segments",
    metadata,
    Column("id", _COUNTED, primary_key=True),
    Column("parent", _COUNTED, ForeignKey("segments.id"), index=True),
    Column("input", JsonText, nullable=False),
    Column("added", JsonText, nullable=False),
    Column("opening", SafeText),
    Column("said", SafeText),
)

conversations = Table(
    "conversations",
    metadata,
    Column("id", SafeText, primary_key=True),
    Column("owner", SafeText, nullable=False),
    Column("metadata", JsonText, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("head", _COUNTED, ForeignKey("segments.id"), nullable=False, index=True),
    Column("used_at", Double, nullable=False, server_default="0"),
    Index("ix_conversations_used", "owner", "used_at", "id"),
)

runs = Table(
    "runs",
    metadata,
    Column("id", SafeText, primary_key=True),
    Column("owner", SafeText, nullable=False),
    Column("agent", SafeText, nullable=False),
    Column("face", SafeText, nullable=False),
    Column("request", JsonText, nullable=False),
    Column("previous", SafeText),
    Column("conversation", SafeText),
    Column("background", Boolean, nullable=False),
    Column("retained", Boolean, nullable=False),
    Column("status", SafeText, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("ending", SafeText),
    Column("usage", JsonText),
    Column("error", JsonText),
    Column("holder", SafeText),
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
    Column("run_id", SafeText, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("text", SafeText, nullable=False),
    Column("reasoning", SafeText, nullable=False),
    Column("finish_reason", SafeText),
    Column("usage", JsonText),
    Column("sent", JsonText),
    Column("written", JsonText),
    Column("prompt", JsonText),
    Column("seconds", Double),
    Column("ended_at", Double),
    Column("details", JsonText),
)

calls = Table(
    "calls",
    metadata,
    Column("event_id", SafeText, primary_key=True),
    Column("run_id", SafeText, ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("step", Integer, nullable=False),
    Column("number", Integer, nullable=False),
    Column("id", SafeText, nullable=False),
    Column("name", SafeText, nullable=False),
    Column("arguments", JsonText, nullable=False),
    Column("extra", JsonText, nullable=False),
    Column("state", SafeText, nullable=False),
    Column("result", JsonText),
    Column("failed", Boolean, nullable=False),
    Column("seconds", Double),
    Column("tokens", Integer, nullable=False, server_default="0"),
    Column("deadline", Double),
    Column("decision", SafeText),
    Column("decided_by", SafeText),
    Column("decision_reason", SafeText),
    Column("attempts", Integer),
    Column("sent_at", Double),
    Column("finished_at", Double),
    Column("decided_at", Double),
    Column("deliveries", Integer),
    Column("call_event", JsonText),
    Column("reply_event", JsonText),
    Column("report", JsonText),
    Column("origin", SafeText, nullable=False, server_default="api"),
    Column("due", Double),
    Column("input_request", JsonText),
    Column("input_answer", JsonText),
    UniqueConstraint("run_id", "step", "number", name="uq_calls_place"),
)
_partial_index("ix_calls_deadline", calls.c.state, calls.c.deadline, where=calls.c.deadline.is_not(None))
_partial_index("ix_calls_approval", calls.c.run_id, where=calls.c.state == "approval")
_partial_index("ix_calls_input", calls.c.run_id, where=calls.c.state == "input")

events = Table(
    "events",
    metadata,
    Column("run_id", SafeText, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("event", JsonText, nullable=False),
)

materials = Table(
    "materials",
    metadata,
    Column("digest", SafeText, primary_key=True),
    Column("document", JsonText, nullable=False),
    Column("used_at", Double, nullable=False, index=True),
)

buckets = Table(
    "limit_buckets",
    metadata,
    Column("key", SafeText, primary_key=True),
    Column("bucket", BigInteger, primary_key=True, autoincrement=False),
    Column("last_used", Double, nullable=False),
    Column("expires", Double, nullable=False, index=True),
    Column("amount", BigInteger, nullable=False),
)

places = Table(
    "limit_places",
    metadata,
    Column("key", SafeText, primary_key=True),
    Column("token", SafeText, primary_key=True),
    Column("expires", Double, nullable=False, index=True),
)

reservations = Table(
    "limit_reservations",
    metadata,
    Column("key", SafeText, primary_key=True),
    Column("token", SafeText, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    Column("expires", Double, nullable=False, index=True),
)

feed = Table(
    "feed",
    metadata,
    Column("position", _COUNTED, primary_key=True),
    Column("namespace", SafeText, nullable=False),
    Column("type", SafeText, nullable=False),
    Column("source", SafeText, nullable=False),
    Column("event_id", SafeText, nullable=False),
    Column("event", SafeText, nullable=False),
    Column("came_at", Double, nullable=False),
    UniqueConstraint("namespace", "source", "event_id", name="uq_feed_event"),
    Index("ix_feed_type", "namespace", "type", "position"),
)

# One row: the events up to this position are deleted, or came before there was a feed.
feed_starts = Table(
    "feed_starts", metadata, Column("position", BigInteger, primary_key=True, autoincrement=False)
)

push_targets = Table(
    "push_targets",
    metadata,
    Column("run_id", SafeText, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("id", SafeText, primary_key=True),
    Column("target", JsonText, nullable=False),
    Column("notified", SafeText, nullable=False),
    Column("failures", Integer, nullable=False),
    Column("due", Double, index=True),
)

owed_answers = Table(
    "owed_answers",
    metadata,
    Column("run_id", SafeText, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("due", Double, nullable=False, index=True),
)
