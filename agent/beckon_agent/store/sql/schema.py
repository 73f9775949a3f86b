"""Bringing a database to the newest revision."""

from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, inspect, select
from sqlalchemy.exc import DBAPIError

from beckon_agent.store import migrations
from beckon_agent.store.base import StoreRefused
from beckon_agent.store.sql import dialect
from beckon_agent.store.sql.tables import metadata

_VERSION = Table(  # as Alembic makes it
    migrations.VERSION_TABLE,
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{migrations.VERSION_TABLE}_pkc"),
)


def bring_up_to_date(connection: Connection) -> None:
    """Make the tables, or apply what is missing, all or nothing; of replicas that start together one does it.

    Raises `StoreRefused` for a database of a newer version, and for one that is somebody else's.
    """
    dialect.lock(connection, "beckon: migrate")
    present = inspect(connection).get_table_names()
    known = migrations.VERSION_TABLE in present
    current = connection.scalar(select(_VERSION.c.version_num)) if known else None
    if current == migrations.HEAD:
        return
    try:
        if present:
            upgrade(connection, current, migrations.HEAD)
        else:
            _begin(connection)
    except DBAPIError as error:
        reason = str(error.orig).splitlines()[0]
        raise StoreRefused(
            f"the database cannot be set up: {reason}; give Beckon a database of its own, "
            "and a user who may create tables there"
        ) from error


def _begin(connection: Connection) -> None:
    """Make all tables as the revisions leave them, which a test compares."""
    metadata.create_all(connection, checkfirst=False)
    _VERSION.create(connection, checkfirst=False)
    connection.execute(_VERSION.insert().values(version_num=migrations.HEAD))


def upgrade(connection: Connection, current: str | None, revision: str) -> None:
    """Apply the revisions between two; `current` is `None` for an empty database."""
    # Alembic is only needed here: 12 MB that a database in order, or in memory, need not cost.
    from alembic import command  # noqa: PLC0415  # see above
    from alembic.config import Config  # noqa: PLC0415  # see above
    from alembic.script import ScriptDirectory  # noqa: PLC0415  # see above

    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in known:
        raise StoreRefused(
            f"the database is of a newer Beckon: its schema is {current}, and this version knows up to "
            f"{migrations.HEAD}; start that version again, or restore a backup from before"
        )
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
