"""PostgreSQL with a pool of connections.

The driver reads the address itself, with all options of libpq.

A piece of work runs in one greenlet from the pool and back to it: SQLAlchemy's own asynchronous connection
would start one for every step of that, and take a third more of the processor.
"""

from collections.abc import Callable
from typing import Any

import asyncpg  # type: ignore[import-untyped]  # the package brings no types
from sqlalchemy import Connection, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection
from sqlalchemy.util import greenlet_spawn

from beckon_agent.store.base import StoreRefused
from beckon_agent.store.sql.database import ADDRESSES, Result, plain_errors
from beckon_agent.store.sql.tables import metadata

CONNECTIONS = 10
"""How many one replica opens at most."""

_SECONDS_TO_CONNECT = 10
_SECONDS_TO_ANSWER = 30
_SETTINGS = {
    "application_name": "beckon-agent",
    # A replica whose node died in a transaction would hold its runs until TCP gives up, after hours.
    "idle_in_transaction_session_timeout": "15s",
    # Statements are short: compiling them would take longer than they do.
    "jit": "off",
}

for _index in (each for table in metadata.tables.values() for each in table.indexes):
    if "where" in _index.info:
        _index.dialect_options["postgresql"]["where"] = _index.info["where"]


class PostgreSQL:
    """A database on a PostgreSQL server; a `Database`."""

    def __init__(self, dsn: str) -> None:
        async def connect() -> Any:
            try:
                return await asyncpg.connect(
                    dsn,
                    timeout=_SECONDS_TO_CONNECT,
                    command_timeout=_SECONDS_TO_ANSWER,
                    server_settings=_SETTINGS,
                )
            except (ValueError, asyncpg.ClientConfigurationError):
                # The driver's message may quote the password that it took for something else.
                raise StoreRefused(
                    f"the address of the PostgreSQL database cannot be read; write {ADDRESSES}, with special "
                    "characters of the password percent-encoded"
                ) from None

        self._engine = create_async_engine(
            "postgresql+asyncpg://",
            async_creator=connect,
            pool_size=CONNECTIONS,
            max_overflow=0,
            pool_timeout=_SECONDS_TO_CONNECT,
            pool_use_lifo=True,
            hide_parameters=True,
        )
        self._unchanged = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        event.listen(self._engine.sync_engine, "checkout", _refuse_closed)

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run work; each statement sees the data stored by then."""

        def run() -> Result:
            with self._unchanged.sync_engine.connect() as connection:
                return work(connection)

        with plain_errors():
            return await greenlet_spawn(run)

    async def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run work in a transaction. The work locks the rows that must not change meanwhile."""

        def run() -> Result:
            with self._engine.sync_engine.begin() as connection:
                return work(connection)

        with plain_errors():
            return await greenlet_spawn(run)

    async def aclose(self) -> None:
        """Close the pool."""
        await self._engine.dispose()


def _refuse_closed(
    connection: DBAPIConnection, _entry: ConnectionPoolEntry, _proxy: PoolProxiedConnection
) -> None:
    """Make the pool replace a connection closed by the server."""
    if connection.driver_connection.is_closed():
        raise DisconnectionError
