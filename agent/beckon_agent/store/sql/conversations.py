"""Conversations, their titles, and the search in their messages.

The search looks through every segment of a conversation, and through the runs that left no segment there:
those that are still at work or were cut off, because their questions must be found as well.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import (
    CTE,
    ColumnElement,
    Connection,
    and_,
    delete,
    exists,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError

from beckon_agent.core.model_types import Message
from beckon_agent.core.records import StoredConversation
from beckon_agent.store.search_text import search_words
from beckon_agent.store.sql import conversation_chain
from beckon_agent.store.sql.database import Database
from beckon_agent.store.sql.tables import conversations, runs, segments

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
            head = conversation_chain.append_segment(connection, None, messages)
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

    async def close(self, conversation_id: str) -> bool:
        """Delete a conversation, and its messages unless a run needs them."""
        statement = delete(conversations).where(conversations.c.id == conversation_id)

        def work(connection: Connection) -> bool:
            head = connection.scalar(statement.returning(conversations.c.head))
            if head is None:
                return False
            conversation_chain.delete_unused(connection, [head])
            return True

        return await self._database.write(work)

    async def read(self, conversation_id: str) -> list[Message]:
        """Return all messages."""
        head = select(conversations.c.head).where(conversations.c.id == conversation_id).scalar_subquery()
        return await self._database.read(
            lambda connection: conversation_chain.load_messages(connection, head, found=False)
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
    found = segments.c.said.contains(search_words(query), autoescape=True)
    ended = select(link.c.conversation).join(segments, segments.c.id == link.c.id).where(found)
    titles = (
        exists()
        .where(runs.c.conversation == conversations.c.id, _LEFT_NOTHING)
        .where(segments.c.id == runs.c.segment, found)
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
    found = {row[0]: row[1] for row in connection.execute(titles)}
    return found | {row[0]: row[1] for row in connection.execute(ended)}
