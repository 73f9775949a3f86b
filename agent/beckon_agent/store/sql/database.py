"""The interface of a database, and SQL in its two dialects."""

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
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from beckon_agent.store.base import StoreUnavailable

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


Result = TypeVar("Result")

ADDRESSES = "sqlite:///FILE, sqlite:// for memory, or postgresql://USER:PASSWORD@HOST/DATABASE"
"""How databases are named."""


class Database(Protocol):
    """Runs work with a plain, synchronous SQLAlchemy connection.

    Raises `StoreUnavailable` if the database does not answer. An exception of the work itself undoes its
    changes.
    """

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run work without changes."""
        ...

    async def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run work in a transaction: all its changes are stored, or none."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...


@contextmanager
def plain_errors() -> Iterator[None]:
    """Translate a driver's exceptions into those of the store.

    An `IntegrityError` passes through: the work itself explains a broken constraint.
    """
    try:
        yield
    except IntegrityError:
        raise
    except DataError:
        # The driver's message would show the value.
        raise ValueError("a value does not fit its column in the store") from None
    except DBAPIError as error:
        raise StoreUnavailable(f"the database failed: {first_line(error.orig or error)}") from error
    except StatementError as error:
        if isinstance(error.orig, ValueError):  # of `columns`: the value, and not the database
            raise error.orig from None
        raise
    except (OSError, PoolTimeout, sqlite3.Error) as error:
        raise StoreUnavailable(f"the database does not answer: {first_line(error)}") from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, at most 300 characters.

    It leaves out the lines that libraries add. An empty message gives the name of the class.
    """
    lines = str(error).splitlines()
    return lines[0][:300] if lines else type(error).__name__
