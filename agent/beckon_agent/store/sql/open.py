"""Opening a store by its address, and migrating its database."""

from pathlib import Path

from sqlalchemy import (
    URL,
    Column,
    Connection,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    inspect,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, DBAPIError

from beckon_agent.store import migrations
from beckon_agent.store.base import (
    Conversations,
    EventLog,
    History,
    Journal,
    Materials,
    Runs,
    StoreRefused,
)
from beckon_agent.store.counters import Counters
from beckon_agent.store.feed import Feed
from beckon_agent.store.outgoing import OwedAnswers, PushTargets
from beckon_agent.store.sql import database
from beckon_agent.store.sql.conversations import SqlConversations
from beckon_agent.store.sql.counters import SqlCounters
from beckon_agent.store.sql.database import ADDRESSES, Database
from beckon_agent.store.sql.feed import SqlFeed
from beckon_agent.store.sql.history import SqlHistory
from beckon_agent.store.sql.journal import SqlJournal
from beckon_agent.store.sql.outgoing import SqlOwedAnswers, SqlPushTargets
from beckon_agent.store.sql.runs import SqlRuns
from beckon_agent.store.sql.sqlite import SQLite, make_file
from beckon_agent.store.sql.steps import SqlEventLog, SqlMaterials
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
        self.feed: Feed = SqlFeed(database)
        self.push: PushTargets = SqlPushTargets(database)
        self.owed_answers: OwedAnswers = SqlOwedAnswers(database)

    async def open_scratch(self) -> "SqlStore":
        """Return a new store in memory for temporary data."""
        database = SQLite(None)
        await database.write(metadata.create_all)  # nothing is there to be brought up to date
        return SqlStore(database)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._database.aclose()


async def open_store(url: str) -> SqlStore:
    """Open a store and migrate its schema to this version.

    Several processes may do so at once. Raises `StoreRefused` if the address or the database cannot be used,
    and `StoreUnavailable` if the database does not answer. Neither message shows a password.
    """
    database = database_at(url)
    try:
        await database.write(update_schema)
    except BaseException:
        await database.aclose()
        raise
    return SqlStore(database)


def database_at(url: str) -> Database:
    """Return the database at an address, not yet connected. Raises `StoreRefused` for an invalid address."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StoreRefused(f"that is no address of a database; write {ADDRESSES}") from None
    if parsed.drivername == "sqlite":
        return SQLite(_file_of(parsed))
    if parsed.drivername in ("postgresql", "postgres"):
        # A process that uses SQLite needs neither the driver nor what SQLAlchemy brings for it: 10 MB.
        from beckon_agent.store.sql.postgresql import PostgreSQL  # noqa: PLC0415  # see above

        return PostgreSQL(url)
    raise StoreRefused(f"{parsed.drivername!r} is no kind of database that is known; write {ADDRESSES}")


def _file_of(url: URL) -> Path | None:
    if url.host or url.query:
        raise StoreRefused(f"the address of a SQLite file has no host and no options; write {ADDRESSES}")
    if not url.database or url.database == ":memory:":
        return None
    path = Path(url.database)
    make_file(path)
    return path


_VERSION = Table(  # as Alembic makes it
    migrations.VERSION_TABLE,
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{migrations.VERSION_TABLE}_pkc"),
)


def update_schema(connection: Connection) -> None:
    """Create the tables or apply the missing revisions, all or nothing.

    Of replicas that start together one does it. Raises `StoreRefused` for a database of a newer version, and
    for one of another program.
    """
    database.lock_name(connection, "beckon: migrate")
    known = migrations.VERSION_TABLE in inspect(connection).get_table_names()
    current = connection.scalar(select(_VERSION.c.version_num)) if known else None
    if current == migrations.HEAD:
        return
    try:
        if current is None:
            _create_tables(connection)
        else:
            _upgrade_tables(connection, current)
    except DBAPIError as error:
        reason = str(error.orig).splitlines()[0]
        raise StoreRefused(
            f"the database cannot be set up: {reason}; give Beckon a database of its own, "
            "and a user who may create tables there"
        ) from error


def _create_tables(connection: Connection) -> None:
    """Create all tables as they are after the last revision. A test compares the two."""
    metadata.create_all(connection, checkfirst=False)
    _VERSION.create(connection, checkfirst=False)
    connection.execute(_VERSION.insert().values(version_num=migrations.HEAD))


def _upgrade_tables(connection: Connection, current: str) -> None:
    """Apply the revisions after the current one."""
    # Alembic is only needed here: 12 MB that a database in order, or in memory, need not cost.
    from alembic import command  # noqa: PLC0415  # see above
    from alembic.config import Config  # noqa: PLC0415  # see above
    from alembic.script import ScriptDirectory  # noqa: PLC0415  # see above

    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if current not in known:
        raise StoreRefused(
            f"the database is of a newer Beckon: its schema is {current}, and this version knows up to "
            f"{migrations.HEAD}; start that version again, or restore a backup from before"
        )
    config.attributes["connection"] = connection
    command.upgrade(config, migrations.HEAD)
