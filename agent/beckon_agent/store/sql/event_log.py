"""The event log of runs, and JSON documents shared by many turns.

Each shared document is stored once, under its digest.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, delete, func, select

from beckon_agent.core.records import LogEntries
from beckon_agent.store.sql import database
from beckon_agent.store.sql.database import Database, now
from beckon_agent.store.sql.steps import append_events, lock_held
from beckon_agent.store.sql.tables import events as table
from beckon_agent.store.sql.tables import materials, runs


class SqlEventLog:
    """`store.base.EventLog` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, run_id: str, holder: str, said: LogEntries) -> None:
        """Store events."""

        def work(connection: Connection) -> None:
            lock_held(connection, run_id, holder)
            append_events(connection, run_id, said)

        if said.events:
            await self._database.write(work)

    async def read_after(
        self, run_id: str, number: int, *, most: int
    ) -> list[tuple[int, Mapping[str, object]]]:
        """Return the events after a number."""
        statement = (
            select(table.c.number, table.c.event)
            .where(table.c.run_id == run_id, table.c.number > number)
            .order_by(table.c.number)
            .limit(most)
        )
        rows = await self._database.read(lambda connection: connection.execute(statement).all())
        return [(row[0], row[1]) for row in rows]


_GRACE = 86_400.0  # seconds; a user of a document has renewed it less than an hour ago
_PAGE = 500


class SqlMaterials:
    """`store.base.Materials` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store_documents(self, documents: Mapping[str, object]) -> None:
        """Store documents in the order of their digests, to avoid deadlocks."""
        rows = [{"digest": digest, "document": documents[digest]} for digest in sorted(documents)]

        def work(connection: Connection) -> None:
            added = database.insert_into(connection, materials).values(used_at=now())
            connection.execute(
                added.on_conflict_do_update(index_elements=["digest"], set_={"used_at": now()}), rows
            )

        if rows:
            await self._database.write(work)

    async def read_documents(self, digests: Iterable[str]) -> dict[str, Any]:
        """Return documents by their digests."""
        wanted = sorted(set(digests))

        def work(connection: Connection) -> dict[str, Any]:
            found: dict[str, Any] = {}
            for page in _split_pages(wanted):
                rows = select(materials.c.digest, materials.c.document).where(materials.c.digest.in_(page))
                found |= {row.digest: row.document for row in connection.execute(rows)}
            return found

        return await self._database.read(work)


def _split_pages(digests: list[str]) -> Iterable[list[str]]:
    return (digests[first : first + _PAGE] for first in range(0, len(digests), _PAGE))


def sweep_materials(connection: Connection) -> None:
    """Delete documents last used over a day before the oldest run.

    Without any runs, these are the documents last used over a day ago.
    """
    oldest = select(func.coalesce(func.min(runs.c.created_at), now())).scalar_subquery()
    connection.execute(delete(materials).where(materials.c.used_at < oldest - _GRACE))
