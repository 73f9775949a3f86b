"""Conversations in SQL, as chains of segments."""

from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    ScalarSelect,
    and_,
    bindparam,
    delete,
    exists,
    insert,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError

from beckon_agent.core import model_types
from beckon_agent.core.model_types import Message, search_words
from beckon_agent.core.records import StoredConversation
from beckon_agent.store.sql import database
from beckon_agent.store.sql.database import Database
from beckon_agent.store.sql.tables import conversations, runs, segments

_APPEND = insert(segments).returning(segments.c.id)
_COMPLETE = (
    update(segments)
    .where(segments.c.id == bindparam("the_segment"))
    .values(said=segments.c.said + bindparam("more", type_=segments.c.said.type))
)
_USED = (
    update(conversations)
    .where(conversations.c.id == bindparam("the_conversation"))
    .values(used_at=database.now())
)
# From a segment without users up to the first one with some.
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


def append_segment(connection: Connection, parent: int | None, input_: Sequence[Message]) -> int:
    """Store a segment after another; return its number."""
    values = {
        "parent": parent,
        "input": list(input_),
        "added": [],
        "opening": model_types.opening_text(input_),
        "said": model_types.searchable_text(input_),
    }
    number: int = connection.execute(_APPEND, values).scalar_one()
    return number


def complete_segment(connection: Connection, segment: int, added: Sequence[Message]) -> None:
    """Store the messages added by a run after its input."""
    members = {"added": list(added), "more": f" {model_types.searchable_text(added)}"}
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


def load_messages(connection: Connection, last: ScalarSelect[int], *, input_alone: bool) -> list[Message]:
    """Return the messages of a chain from its beginning, in one query.

    With `input_alone` the last segment gives its input alone: the conversation as its run found it.
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
        if depth or not input_alone:
            collected += added
    return collected


def delete_unused(connection: Connection, candidates: Sequence[int], *, alone: bool = False) -> None:
    """Delete unneeded segments, and earlier ones needed only by them.

    One transaction at a time does so: of two at once each would leave a segment that the other seems to need.
    With `alone` no lock is taken: a segment without a conversation or earlier run has no others to see.
    """
    if not alone:
        database.lock_name(connection, "beckon: forget segments")
    connection.execute(_FORGET, [{"segment": candidate} for candidate in candidates])


COLUMNS = tuple(column for column in conversations.c if column.name not in ("head", "used_at"))
"""What a `StoredConversation` holds."""


class SqlConversations:
    """`store.base.Conversations` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, conversation: StoredConversation, messages: Sequence[Message]) -> None:
        """Store a conversation; raises `ValueError` if its id is taken."""
        members = {
            "id": conversation.id,
            "owner": conversation.owner,
            "metadata": dict(conversation.metadata),
            "created_at": conversation.created_at,
        }

        def work(connection: Connection) -> None:
            head = append_segment(connection, None, messages)
            used = {"used_at": conversation.created_at}
            connection.execute(insert(conversations).values(head=head, **members, **used))

        try:
            await self._database.write(work)
        except IntegrityError:
            raise ValueError(f"there is a conversation {conversation.id!r} already") from None

    async def find(self, conversation_id: str) -> StoredConversation | None:
        """Return a conversation."""
        statement = select(*COLUMNS).where(conversations.c.id == conversation_id)
        row = await self._database.read(lambda connection: connection.execute(statement).first())
        return None if row is None else StoredConversation(**row._asdict())

    async def update(self, conversation_id: str, metadata: Mapping[str, str]) -> bool:
        """Replace the metadata."""
        statement = (
            update(conversations)
            .where(conversations.c.id == conversation_id)
            .values({conversations.c.metadata: dict(metadata)})
        )
        return await self._database.write(lambda connection: connection.execute(statement).rowcount > 0)

    async def rewrite(
        self, conversation_id: str, change: Callable[[list[Message]], list[Message] | None]
    ) -> bool:
        """Replace all messages by what `change` makes of them."""
        this = conversations.c.id == conversation_id

        def work(connection: Connection) -> bool:
            head = connection.scalar(select(conversations.c.head).where(this).with_for_update())
            if head is None:
                return False
            last = select(literal(head)).scalar_subquery()
            messages = change(load_messages(connection, last, input_alone=False))
            if messages is None:
                return False
            changed = append_segment(connection, None, messages)
            connection.execute(update(conversations).where(this).values(head=changed))
            delete_unused(connection, [head])
            return True

        return await self._database.write(work)

    async def close(self, conversation_id: str) -> bool:
        """Delete a conversation, and its messages unless a run needs them."""
        statement = delete(conversations).where(conversations.c.id == conversation_id)

        def work(connection: Connection) -> bool:
            head = connection.scalar(statement.returning(conversations.c.head))
            if head is None:
                return False
            delete_unused(connection, [head])
            return True

        return await self._database.write(work)

    async def read(self, conversation_id: str) -> list[Message]:
        """Return all messages."""
        head = select(conversations.c.head).where(conversations.c.id == conversation_id).scalar_subquery()
        return await self._database.read(
            lambda connection: load_messages(connection, head, input_alone=False)
        )


_LEFT_NOTHING = or_(runs.c.ended_at.is_(None), runs.c.status.in_(("failed", "cancelled")))


def _select_segments(mine: ColumnElement[bool]) -> CTE:
    """Return all segments of some conversations, with their depth.

    The depth is the number of segments after it.
    """
    link = (
        select(
            conversations.c.id.label("conversation"),
            segments.c.id,
            segments.c.parent,
            literal(0).label("depth"),
        )
        .join(segments, segments.c.id == conversations.c.head)
        .where(mine)
        .cte("link", recursive=True)
    )
    before = select(link.c.conversation, segments.c.id, segments.c.parent, link.c.depth + 1)
    return link.union_all(before.join(segments, segments.c.id == link.c.parent))


def mentions_query(query: str, owner: str) -> ColumnElement[bool]:
    """Return the condition for an owner's conversations matching a query."""
    link = _select_segments(conversations.c.owner == owner)
    mentions = segments.c.said.contains(search_words(query), autoescape=True)
    ended = select(link.c.conversation).join(segments, segments.c.id == link.c.id).where(mentions)
    titles = (
        exists()
        .where(runs.c.conversation == conversations.c.id, _LEFT_NOTHING)
        .where(segments.c.id == runs.c.segment, mentions)
    )
    return or_(conversations.c.id.in_(ended), titles)


def titles_of(connection: Connection, ids: Sequence[str]) -> dict[str, str]:
    """Return the beginning of each conversation's first question, by id.

    A conversation without a question is left out.
    """
    if not ids:
        return {}
    link = _select_segments(conversations.c.id.in_(ids))
    ended = (
        select(link.c.conversation, segments.c.opening)
        .join(segments, segments.c.id == link.c.id)
        .where(segments.c.opening.is_not(None))
        .order_by(link.c.depth)
    )
    titles = (
        select(runs.c.conversation, segments.c.opening)
        .join(segments, segments.c.id == runs.c.segment)
        .where(and_(runs.c.conversation.in_(ids), _LEFT_NOTHING, segments.c.opening.is_not(None)))
        .order_by(runs.c.created_at.desc())
    )
    # Of each the last row counts: the earliest question, and one that is part of the conversation above all.
    by_id = {row[0]: row[1] for row in connection.execute(titles)}
    return by_id | {row[0]: row[1] for row in connection.execute(ended)}
