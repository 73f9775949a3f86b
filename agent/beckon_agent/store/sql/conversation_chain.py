"""The segments of a conversation: each refers to the one before it."""

from collections.abc import Sequence

from sqlalchemy import Connection, ScalarSelect, bindparam, insert, literal, select, text, update

from beckon_agent.core.model_types import Message
from beckon_agent.store import search_text
from beckon_agent.store.sql import dialect
from beckon_agent.store.sql.tables import conversations, segments

_APPEND = insert(segments).returning(segments.c.id)
_COMPLETE = (
    update(segments)
    .where(segments.c.id == bindparam("the_segment"))
    .values(said=segments.c.said + bindparam("more", type_=segments.c.said.type))
)
_USED = (
    update(conversations)
    .where(conversations.c.id == bindparam("the_conversation"))
    .values(used_at=dialect.now())
)
# From a segment that nobody needs up to the first that somebody does.
_FORGET = text(
    """
    WITH RECURSIVE doomed (id, parent) AS (
        SELECT s.id, s.parent FROM segments s
        WHERE s.id = :segment
          AND NOT EXISTS (SELECT 1 FROM segments later WHERE later.parent = s.id)
          AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.segment = s.id)
          AND NOT EXISTS (SELECT 1 FROM conversations c WHERE c.head = s.id)
        UNION ALL
        SELECT s.id, s.parent FROM doomed JOIN segments s ON s.id = doomed.parent
        WHERE NOT EXISTS (SELECT 1 FROM segments later WHERE later.parent = s.id AND later.id <> doomed.id)
          AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.segment = s.id)
          AND NOT EXISTS (SELECT 1 FROM conversations c WHERE c.head = s.id)
    )
    DELETE FROM segments WHERE id IN (SELECT id FROM doomed)
    """
)


def append_segment(
    connection: Connection, parent: int | None, input_: Sequence[Message], added: Sequence[Message] = ()
) -> int:
    """Store a segment after another; return its number."""
    values = {
        "parent": parent,
        "input": list(input_),
        "added": list(added),
        "opening": search_text.opening_text(input_),
        "said": search_text.searchable_text([*input_, *added]),
    }
    number: int = connection.execute(_APPEND, values).scalar_one()
    return number


def complete_segment(connection: Connection, segment: int, added: Sequence[Message]) -> None:
    """Store the messages added by a run after its input."""
    members = {"added": list(added), "more": f" {search_text.searchable_text(added)}"}
    connection.execute(_COMPLETE, {"the_segment": segment, **members})


def advance_conversation(connection: Connection, conversation: str, segment: int) -> None:
    """Append a segment to a conversation, if it still exists.

    Concurrent runs in one conversation end one after the other. A later one is put after the others, as a
    copy of its segment, because the runs that follow the run itself continue from what it had seen.
    """
    head = connection.scalar(
        select(conversations.c.head).where(conversations.c.id == conversation).with_for_update(key_share=True)
    )
    if head is None:
        return
    parent = connection.scalar(select(segments.c.parent).where(segments.c.id == segment))
    if parent != head:
        copied = ("input", "added", "opening", "said")
        again = select(literal(head), *(segments.c[name] for name in copied)).where(segments.c.id == segment)
        copy = insert(segments).from_select(["parent", *copied], again)
        segment = connection.execute(copy.returning(segments.c.id)).scalar_one()
    connection.execute(_USED, {"the_conversation": conversation, "head": segment})


def mark_used(connection: Connection, conversation: str) -> None:
    """Mark a conversation as used now, by a new question."""
    connection.execute(_USED, {"the_conversation": conversation})


def load_messages(connection: Connection, last: ScalarSelect[int], *, found: bool) -> list[Message]:
    """Return the messages of a chain from its beginning, in one query.

    With `found` the last segment gives its input alone: the conversation as its run found it.
    """
    link = (
        select(segments.c.id, segments.c.parent, literal(0).label("depth"))
        .where(segments.c.id == last)
        .cte("link", recursive=True)
    )
    link = link.union_all(
        select(segments.c.id, segments.c.parent, link.c.depth + 1).join(link, segments.c.id == link.c.parent)
    )
    statement = (
        select(segments.c.input, segments.c.added, link.c.depth)
        .join(link, segments.c.id == link.c.id)
        .order_by(link.c.depth.desc())
    )
    collected: list[Message] = []
    for input_, added, depth in connection.execute(statement):
        collected += input_
        if depth or not found:
            collected += added
    return collected


def delete_unused(connection: Connection, candidates: Sequence[int], *, alone: bool = False) -> None:
    """Delete unneeded segments, and earlier ones needed only by them.

    One transaction at a time does so: of two at once each would leave a segment that the other seems to need.
    With `alone` no lock is taken: a segment without a conversation or earlier run has no others to see.
    """
    if not alone:
        dialect.lock_name(connection, "beckon: forget segments")
    connection.execute(_FORGET, [{"segment": candidate} for candidate in candidates])
