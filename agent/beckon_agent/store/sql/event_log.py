"""What runs told their clients."""

from collections.abc import Mapping

from sqlalchemy import Connection, select

from beckon_agent.store.records import Said
from beckon_agent.store.sql.database import Database
from beckon_agent.store.sql.steps import lock_held, log
from beckon_agent.store.sql.tables import events as table


class SqlEventLog:
    """`store.base.EventLog` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, run_id: str, holder: str, said: Said) -> None:
        """Store events."""

        def work(connection: Connection) -> None:
            lock_held(connection, run_id, holder)
            log(connection, run_id, said)

        if said.events:
            await self._database.write(work)

    async def after(self, run_id: str, number: int, *, most: int) -> list[tuple[int, Mapping[str, object]]]:
        """Return the events behind a number."""
        statement = (
            select(table.c.number, table.c.event)
            .where(table.c.run_id == run_id, table.c.number > number)
            .order_by(table.c.number)
            .limit(most)
        )
        rows = await self._database.read(lambda connection: connection.execute(statement).all())
        return [(row[0], row[1]) for row in rows]
