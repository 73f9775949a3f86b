"""SQLite: one thread writes, two others read, with a write-ahead log.

A whole piece of work runs in its thread, so it costs one change of threads and not one for every statement;
pieces that would have to wait for each other are stored together.

Other processes may use the same file: a writer locks it at the beginning of the transaction, and waits.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import stamina
from sqlalchemy import URL, Connection, Engine, NullPool, QueuePool, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.pool import ConnectionPoolEntry

from beckon_agent.store.base import StoreRefused
from beckon_agent.store.sql.database import SQLITE_CLOCK, GroupCommit, Result, plain_errors

OLDEST = (3, 35, 0)
"""The first SQLite that knows RETURNING."""

_MAGIC = b"SQLite format 3\0"  # https://www.sqlite.org/fileformat.html#the_database_header
_READERS = 2
PATIENCE = 10
"""Seconds to wait for another process that writes."""


class SQLite:
    """A SQLite file, or memory if `path` is `None`; a `Database`."""

    def __init__(self, path: Path | None) -> None:
        if sqlite3.sqlite_version_info < OLDEST:
            needed = ".".join(map(str, OLDEST))
            raise StoreRefused(
                f"this Python has SQLite {sqlite3.sqlite_version}, and {needed} or later is needed: "
                "use a newer Python, or PostgreSQL"
            )
        self._writing = GroupCommit(self._transaction, "store-writer")
        self._writer = _make_engine(path, reading=False)
        self._connection: Connection | None = None
        # Memory belongs to one connection.
        self._reading = ThreadPoolExecutor(_READERS, "store-reader") if path else None
        self._readers = _make_engine(path, reading=True)

    async def read(self, work: Callable[[Connection], Result]) -> Result:
        """Run work on the latest stored data."""
        if self._reading is None:
            return await self.write(work)
        return await asyncio.get_running_loop().run_in_executor(self._reading, self._read_sync, work)

    async def write(self, work: Callable[[Connection], Result]) -> Result:
        """Run work after all earlier work."""
        return await self._writing.run(work)

    async def aclose(self) -> None:
        """Wait for the work in progress, then close the file."""
        await asyncio.to_thread(self._close_engines)

    def _read_sync(self, work: Callable[[Connection], Result]) -> Result:
        with plain_errors(), self._readers.begin() as connection:
            return work(connection)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with plain_errors():
            if self._connection is None or self._connection.closed:
                self._connection = self._writer.connect()
            with self._connection.begin():
                yield self._connection

    def _close_engines(self) -> None:
        if self._reading is not None:
            self._reading.shutdown()
        self._readers.dispose()
        self._writing.finish(self._close_writer)

    def _close_writer(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._writer.dispose()


def make_file(path: Path) -> None:
    """Create the file, readable by its owner only.

    It will hold conversations. SQLite gives its log the same mode. Raises `StoreRefused` if the file cannot
    be written, or is not a database.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "rb") as file:
            begins = file.read(len(_MAGIC))
    except OSError as error:
        raise StoreRefused(
            f"the database {str(path)!r} cannot be written: {error.strerror}; "
            "name a file in a folder of your own"
        ) from None
    if begins not in (b"", _MAGIC):
        raise StoreRefused(
            f"{str(path)!r}: this file is not a database; name another one, or none that exists"
        )


def _make_engine(path: Path | None, *, reading: bool) -> Engine:
    engine = create_engine(
        URL.create("sqlite", database=str(path) if path else None),
        poolclass=QueuePool if reading else NullPool,
        connect_args={"timeout": PATIENCE, "check_same_thread": False},
        hide_parameters=True,
    )

    def prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # The driver would begin transactions when it thinks best: `begin` below does it.
        connection.isolation_level = None
        connection.create_function(SQLITE_CLOCK, 0, time.time)
        cursor = connection.cursor()
        for pragma in _pragmas_for(reading=reading):
            _set_pragma(cursor, pragma)
        cursor.close()

    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", begin)
    return engine


@stamina.retry(on=sqlite3.OperationalError, attempts=None, timeout=PATIENCE, wait_initial=0.01, wait_max=0.5)
def _set_pragma(cursor: DBAPICursor, pragma: str) -> None:
    """Set a pragma of a connection, with retries.

    If several processes create a file at once, SQLite admits only one, and fails for the others without
    waiting.
    """
    cursor.execute(f"PRAGMA {pragma}")


def _pragmas_for(*, reading: bool) -> tuple[str, ...]:
    """Return the pragmas of a connection.

    With the log and `synchronous` normal nothing that was stored is lost when a process is killed; a power
    cut may lose the last moments, but leaves the file intact.
    """
    if reading:
        return ("query_only = ON",)
    return ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON")
