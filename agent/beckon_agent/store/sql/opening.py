"""From an address to a store that is ready."""

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from beckon_agent.store.base import (
    Conversations,
    Counters,
    EventLog,
    History,
    Journal,
    Materials,
    Runs,
    StoreRefused,
)
from beckon_agent.store.sql.conversations import SqlConversations
from beckon_agent.store.sql.counters import SqlCounters
from beckon_agent.store.sql.database import ADDRESSES, Database
from beckon_agent.store.sql.event_log import SqlEventLog
from beckon_agent.store.sql.history import SqlHistory
from beckon_agent.store.sql.journal import SqlJournal
from beckon_agent.store.sql.materials import SqlMaterials
from beckon_agent.store.sql.runs import SqlRuns
from beckon_agent.store.sql.schema import bring_up_to_date
from beckon_agent.store.sql.sqlite import SQLite, make_file
from beckon_agent.store.sql.tables import metadata


class SqlStore:
    """`store.base.Store` in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.runs: Runs = SqlRuns(database)
        self.journal: Journal = SqlJournal(database)
        self.events: EventLog = SqlEventLog(database)
        self.materials: Materials = SqlMaterials(database)
        self.conversations: Conversations = SqlConversations(database)
        self.history: History = SqlHistory(database)
        self.counters: Counters = SqlCounters(database)

    async def scratch(self) -> "SqlStore":
        """Return a new store in memory, for what is thrown away."""
        database = SQLite(None)
        await database.write(metadata.create_all)  # nothing is there to be brought up to date
        return SqlStore(database)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._database.aclose()


async def open_store(url: str) -> SqlStore:
    """Open a store, and bring its schema to this version; several processes may do so at once.

    Raises `StoreRefused` where the address or the database cannot be used, and `StoreUnavailable` where the
    database does not answer. Neither message shows a password.
    """
    database = database_at(url)
    try:
        await database.write(bring_up_to_date)
    except BaseException:
        await database.aclose()
        raise
    return SqlStore(database)


def database_at(url: str) -> Database:
    """Return the database at an address, not yet connected. Raises `StoreRefused` for no such address."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StoreRefused(f"that is no address of a database; write {ADDRESSES}") from None
    if parsed.drivername == "sqlite":
        return SQLite(_file(parsed))
    if parsed.drivername in ("postgresql", "postgres"):
        # A process that uses SQLite needs neither the driver nor what SQLAlchemy brings for it: 10 MB.
        from beckon_agent.store.sql.postgresql import PostgreSQL  # noqa: PLC0415  # see above

        return PostgreSQL(url)
    raise StoreRefused(f"{parsed.drivername!r} is no kind of database that is known; write {ADDRESSES}")


def _file(url: URL) -> Path | None:
    if url.host or url.query:
        raise StoreRefused(f"the address of a SQLite file has no host and no options; write {ADDRESSES}")
    if not url.database or url.database == ":memory:":
        return None
    path = Path(url.database)
    make_file(path)
    return path
