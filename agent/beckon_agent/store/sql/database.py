"""A database: its interface, SQL in two dialects, and group commit.

Group commit: queued writes share the next transaction of one thread.
"""

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
import asyncio
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol, TypeVar

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


_MOST = 64  # pieces in one transaction: the first of them waits for the last


@dataclass(slots=True)
class _Job:
    work: Callable[[Connection], Any]
    future: asyncio.Future[Any]
    result: object = None
    error: BaseException | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self.future.get_loop()


class GroupCommit:
    """One writer thread for queued writes.

    `transaction` gives a connection in a transaction that ends with the block.
    """

    def __init__(self, transaction: Callable[[], AbstractContextManager[Connection]], name: str) -> None:
        self._transaction = transaction
        self._thread = ThreadPoolExecutor(1, name)
        self._waiting: deque[_Job] = deque()
        self._awake = False
        self._lock = threading.Lock()

    async def run(self, work: Callable[[Connection], Result]) -> Result:
        """Run work after all earlier work. Its changes are stored when this returns."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting.append(_Job(work, future))
            asleep, self._awake = not self._awake, True
        if asleep:
            self._thread.submit(self._run_jobs)
        return await future

    def finish(self, last: Callable[[], None]) -> None:
        """Wait for the work in progress, then end the thread. `last` runs in the thread before it ends."""
        self._thread.submit(last).result()
        self._thread.shutdown()

    def _run_jobs(self) -> None:
        while pieces := self._next_jobs():
            self._commit_jobs(pieces)
            for loop, theirs in groupby(pieces, lambda piece: piece.loop):
                if not loop.is_closed():  # else no caller is left
                    loop.call_soon_threadsafe(_settle_jobs, list(theirs))

    def _next_jobs(self) -> Sequence[_Job]:
        with self._lock:
            pieces = [self._waiting.popleft() for _ in range(min(_MOST, len(self._waiting)))]
            self._awake = bool(pieces)
        return pieces

    def _commit_jobs(self, pieces: Sequence[_Job]) -> None:
        try:
            with self._transaction() as connection:
                for piece in pieces:
                    _run_job(piece, connection, alone=len(pieces) == 1)
        except Exception as error:  # all is undone, and the cause may be any of them
            for piece in pieces:
                piece.error = piece.error or StoreUnavailable(first_line(error))


def _run_job(piece: _Job, connection: Connection, *, alone: bool) -> None:
    if piece.future.cancelled():
        return
    try:
        with plain_errors(), _savepoint(connection, alone=alone):
            piece.result = piece.work(connection)
    except Exception as error:
        piece.error = error
        if alone:
            raise


@contextmanager
def _savepoint(connection: Connection, *, alone: bool) -> Iterator[None]:
    """Undo the changes of a failed piece of work, by a savepoint.

    A piece that is alone in its transaction needs none: the whole transaction is undone.
    """
    if alone:
        yield
        return
    driver: Any = connection.connection.driver_connection
    driver.execute("SAVEPOINT piece")
    try:
        yield
    except BaseException:
        driver.execute("ROLLBACK TO piece")
        driver.execute("RELEASE piece")
        raise
    driver.execute("RELEASE piece")


def _settle_jobs(pieces: Sequence[_Job]) -> None:
    for piece in pieces:
        if piece.future.done():
            continue
        if piece.error is None:
            piece.future.set_result(piece.result)
        else:
            piece.future.set_exception(piece.error)
