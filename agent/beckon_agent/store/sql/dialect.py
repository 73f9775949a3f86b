"""Differences between the two databases: time, locks, and upserts."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Double, Table, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

SQLITE_CLOCK = "beckon_now"
"""A function that every connection to SQLite is given: its own clock counts milliseconds."""

_LOCK = text(
    "SELECT pg_advisory_xact_lock(hashtextextended(:name, 0)), "
    "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"
)


class now(FunctionElement[float]):  # noqa: N801  # reads as a function of SQL
    """The time in seconds since the epoch, by the replicas' shared clock.

    That is the database's own: between the clocks of two nodes a lease or a limit would not be exact.
    """

    type = Double()
    inherit_cache = True


@compiles(now)
def _compile_now(_element: now, _compiler: SQLCompiler, **_options: object) -> str:
    return "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"


@compiles(now, "sqlite")
def _now_in_sqlite(_element: now, _compiler: SQLCompiler, **_options: object) -> str:
    return f"{SQLITE_CLOCK}()"


def lock_name(connection: Connection, name: str) -> float:
    """Lock a name until the transaction ends; return the time.

    In SQLite a writing transaction has locked out all others since it began.
    """
    if connection.dialect.name == "sqlite":
        return time.time()
    moment: float = connection.execute(_LOCK, {"name": name}).one()[1]
    return moment


def insert_into(connection: Connection, table: Table) -> sqlite.Insert | postgresql.Insert:
    """Return an insert statement with `on_conflict_…` methods."""
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table)
    # Imported late: 4 MB that a process with SQLite need not spend.
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415  # see above

    return postgresql.insert(table)
