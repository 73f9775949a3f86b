"""Threads that outlive their runs: each points to its last segment."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from beckon_agent.model.types import Message
from beckon_agent.store.records import Conversation
from beckon_agent.store.sql import chain
from beckon_agent.store.sql.database import Database
from beckon_agent.store.sql.tables import conversations

COLUMNS = tuple(column for column in conversations.c if column.name not in ("head", "used_at"))
"""What a `Conversation` holds."""


class SqlConversations:
    """`store.base.Conversations` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, conversation: Conversation, messages: Sequence[Message]) -> None:
        """Store a conversation. Raises `ValueError` where its id is taken."""
        members = {
            "id": conversation.id,
            "owner": conversation.owner,
            "metadata": dict(conversation.metadata),
            "created_at": conversation.created_at,
        }

        def work(connection: Connection) -> None:
            head = chain.append(connection, None, messages)
            used = {"used_at": conversation.created_at}
            connection.execute(insert(conversations).values(head=head, **members, **used))

        try:
            await self._database.write(work)
        except IntegrityError:
            raise ValueError(f"there is a conversation {conversation.id!r} already") from None

    async def find(self, conversation_id: str) -> Conversation | None:
        """Return a conversation."""
        statement = select(*COLUMNS).where(conversations.c.id == conversation_id)
        row = await self._database.read(lambda connection: connection.execute(statement).first())
        return None if row is None else Conversation(**row._asdict())

    async def update(self, conversation_id: str, metadata: Mapping[str, str]) -> bool:
        """Replace the metadata."""
        statement = (
            update(conversations)
            .where(conversations.c.id == conversation_id)
            .values({conversations.c.metadata: dict(metadata)})
        )
        return await self._database.write(lambda connection: connection.execute(statement).rowcount > 0)

    async def close(self, conversation_id: str) -> bool:
        """Delete a conversation, and of its messages what no run needs."""
        statement = delete(conversations).where(conversations.c.id == conversation_id)

        def work(connection: Connection) -> bool:
            head = connection.scalar(statement.returning(conversations.c.head))
            if head is None:
                return False
            chain.forget(connection, [head])
            return True

        return await self._database.write(work)

    async def read(self, conversation_id: str) -> list[Message]:
        """Return all messages."""
        head = select(conversations.c.head).where(conversations.c.id == conversation_id).scalar_subquery()
        return await self._database.read(lambda connection: chain.messages(connection, head, found=False))
