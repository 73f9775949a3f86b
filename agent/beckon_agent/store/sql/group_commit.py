"""Group commit: queued writes share the next transaction of one thread."""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sqlalchemy import Connection

from beckon_agent.store.base import StoreUnavailable
from beckon_agent.store.sql.database import Result, first_line, plain_errors

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
        """Run work after all earlier work.

        Its changes are stored when this returns.
        """
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting.append(_Job(work, future))
            asleep, self._awake = not self._awake, True
        if asleep:
            self._thread.submit(self._work_off)
        return await future

    def finish(self, last: Callable[[], None]) -> None:
        """Wait for the work in progress, then end the thread.

        `last` runs in the thread before it ends.
        """
        self._thread.submit(last).result()
        self._thread.shutdown()

    def _work_off(self) -> None:
        while pieces := self._next_jobs():
            self._commit_jobs(pieces)
            for loop, theirs in groupby(pieces, lambda piece: piece.loop):
                if not loop.is_closed():  # else nobody is left to be told
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
        except Exception as error:  # all is undone, and whose fault it was nobody can tell
            for piece in pieces:
                piece.error = piece.error or StoreUnavailable(first_line(error))


def _run_job(piece: _Job, connection: Connection, *, alone: bool) -> None:
    if piece.future.cancelled():
        return
    try:
        with plain_errors(), _undone_for_itself(connection, alone=alone):
            piece.result = piece.work(connection)
    except Exception as error:
        piece.error = error
        if alone:
            raise


@contextmanager
def _undone_for_itself(connection: Connection, *, alone: bool) -> Iterator[None]:
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
