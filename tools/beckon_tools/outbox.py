"""Events sent to a Broker beside replies, and the outbox: answers not acknowledged by it, in a file.

The file outlives the process. An answer is written before it is sent for the first time, and removed when
a Broker acknowledges it. Its id is the same at every attempt, by which Brokers and agents recognise a
repetition. Several processes may share the file, such as the tool and a worker: a lease on an answer lets
one of them send it at a time.
"""

import asyncio
import logging
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

from beckon_contract.cloudevents.events import (
    CloudEvent,
    EventError,
    from_structured,
    to_binary,
    to_structured,
)
from beckon_contract.knative.delivery import NEVER_ACCEPTED
from beckon_contract.retry_after import read_retry_after
from beckon_tools.errors import NotSent, UsageError

SINK = "K_SINK"
"""The environment variable with the Broker's address: what a SinkBinding of Knative sets."""

Receiver = Callable[[CloudEvent], None]

_receivers: list[Receiver] = []


def has_sink() -> bool:
    """Return True if there is a Broker, or a receiver in tests."""
    return bool(_receivers or os.environ.get(SINK))


async def send_event(
    event: CloudEvent, what: str, *, sink: str = "", seconds: float = 30, tries: int = 3
) -> None:
    """Send an event to the Broker at `sink`, or at `K_SINK`.

    `what` names the event in errors. Raises `NotSent` if the Broker has not accepted it.
    """
    if _receivers and not sink:
        _receivers[-1](event)
        return
    address = sink or os.environ.get(SINK, "")
    if not address:
        raise NotSent(f"where is the Broker? Set {SINK} to its address, as a SinkBinding does")
    import httpx  # noqa: PLC0415  # a fifth of a second, for tools that send what is no reply

    headers, body = to_binary(event)
    try:
        transport = httpx.AsyncHTTPTransport(retries=tries)
        async with httpx.AsyncClient(transport=transport, timeout=seconds) as client:
            answer = await client.post(address, content=body, headers=headers)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NotSent(f"the Broker at {address} does not answer: {type(error).__name__}") from None
    if not answer.is_success:
        raise NotSent(
            f"the Broker at {address} did not take the {what}: {answer.status_code}",
            status=answer.status_code,
            retry_after=read_retry_after(answer.headers.get("retry-after", "")),
        )


@contextmanager
def taken_by(receiver: Receiver) -> Iterator[None]:
    """Hand every event of this process to `receiver` instead of a Broker, for tests without one."""
    _receivers.append(receiver)
    try:
        yield
    finally:
        _receivers.remove(receiver)


logger = logging.getLogger(__name__)

OUTBOX = "BECKON_TOOLS_OUTBOX"
"""The environment variable with the path of the outbox, for processes that are no tool, too."""

KEEP_SECONDS = 86_400.0
"""How long an answer is sent again at least: agents wait a day where an EventType names no time."""

_MOST = 10_000  # answers in one file
_ATTEMPT_SECONDS = 10.0
_LEASE_SECONDS = 15.0  # longer than an attempt
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0  # between two attempts
_LONGEST_RETRY_AFTER = 3600.0
_LOOK_SECONDS = 1.0  # how soon an answer of another process is seen
_AT_ONCE = 8  # attempts side by side

_MAKE = """
CREATE TABLE IF NOT EXISTS beckon_outbox (
    id TEXT NOT NULL,
    sink TEXT NOT NULL,
    event TEXT NOT NULL,
    expires REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    due REAL NOT NULL,
    leased REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (id, sink)
)
"""
_PUT = (
    "INSERT INTO beckon_outbox (id, sink, event, expires, due) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_LEASE = "UPDATE beckon_outbox SET leased = ? WHERE id = ? AND sink = ? AND leased <= ?"
_DUE = (
    "SELECT id, sink, event, expires, attempts FROM beckon_outbox WHERE due <= ? AND leased <= ? "
    "ORDER BY due LIMIT ?"
)
_NEXT = "SELECT min(max(due, leased)) FROM beckon_outbox"
_LATER = "UPDATE beckon_outbox SET attempts = attempts + 1, due = ?, leased = 0 WHERE id = ? AND sink = ?"
_REMOVE = "DELETE FROM beckon_outbox WHERE id = ? AND sink = ?"


_running: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Path, asyncio.Task[None]]] = WeakKeyDictionary()


def find_outbox(path: str = "") -> "Outbox | None":
    """Return the outbox at a path, or the environment's, or `None`."""
    chosen = path or os.environ.get(OUTBOX, "")
    return Outbox(Path(chosen)) if chosen else None


async def flush_outbox() -> bool:
    """Try once to send the due answers of the environment's outbox.

    Returns True if none is left. Raises `UsageError` if the environment has no outbox. This is for a
    worker before it ends, and for a timer: a served tool does so by itself.
    """
    outbox = find_outbox()
    if outbox is None:
        raise UsageError(f"there is no outbox; set {OUTBOX} to the path of its file")
    await outbox.send_due()
    return await outbox.is_empty()


class _StoredAnswer(NamedTuple):
    """One row: an event for a sink, "" for `K_SINK`. Times are in seconds since 1970."""

    id: str
    sink: str
    event: str
    expires: float
    attempts: int


@dataclass(frozen=True, slots=True)
class Outbox:
    """Answers in the SQLite file at `path`.

    The file is created with access for its owner only. Methods raise `OSError` and `sqlite3.Error` if it
    cannot be read or written.
    """

    path: Path

    async def send_answer(self, event: CloudEvent, sink: str, expires: datetime | None) -> None:
        """Send an answer, or leave it in the outbox.

        On return it is acknowledged, or in the file. Raises `NotSent` if it is neither: no Broker is
        known, it refuses the event for good, or the file cannot be written.
        """
        if not (sink or has_sink()):
            await send_event(event, "answer", sink=sink)  # which raises, with the cure
        text, now = to_structured(event)[1].decode(), time.time()
        until = max(now + KEEP_SECONDS, expires.timestamp() if expires else 0)
        answer = _StoredAnswer(event.id, sink, text, until, 0)
        try:
            mine = await asyncio.to_thread(self._store_leased, answer, now)
        except (OSError, sqlite3.Error) as error:
            raise NotSent(f"the outbox {self.path} ({OUTBOX}) takes no answer: {error}") from None
        if mine and (refusal := await self._attempt_once(answer)):
            raise NotSent(refusal)
        if not await self.is_empty():
            self.start_background()

    async def send_due(self) -> None:
        """Try once to send the due answers, at most `8 * _AT_ONCE`.

        Answers that other processes are sending are left out.
        """
        due = await asyncio.to_thread(self._due_answers)
        limit = asyncio.Semaphore(_AT_ONCE)

        async def attempt_answer(answer: _StoredAnswer) -> None:
            async with limit:
                if await asyncio.to_thread(self._lease_answer, answer):
                    await self._attempt_once(answer)

        await asyncio.gather(*(attempt_answer(answer) for answer in due))

    async def run_forever(self) -> None:
        """Send answers when they are due, until cancelled."""
        while True:
            pause = _LOOK_SECONDS
            try:
                await self.send_due()
                pause = min(pause, await asyncio.to_thread(self._seconds_until_due))
            except (OSError, sqlite3.Error) as error:
                logger.error("the outbox %s cannot be read: %s", self.path, error)  # noqa: TRY400 says all
            await asyncio.sleep(max(pause, 0.05))

    def start_background(self) -> "asyncio.Task[None]":
        """Start `run_forever` in the background of this event loop, once. It ends with the loop."""
        tasks = _running.setdefault(asyncio.get_running_loop(), {})
        task = tasks.get(self.path)
        if task is None or task.done():
            task = tasks[self.path] = asyncio.create_task(self.run_forever())
        return task

    async def is_empty(self) -> bool:
        """Return True if every answer was acknowledged or given up."""
        return await asyncio.to_thread(self._seconds_until_due) == float("inf")

    def check_writable(self) -> None:
        """Raise `UsageError` if the file cannot be written."""
        try:
            with self._open_file():
                pass
        except (OSError, sqlite3.Error) as error:
            raise UsageError(
                f"{OUTBOX}: {self.path} cannot be written: {error}; name a file in a folder that can be"
            ) from None

    async def _attempt_once(self, answer: _StoredAnswer) -> str:
        """Send an answer once; return the reason for giving it up.

        The reason is "" if the answer is acknowledged, or stays in the outbox.
        """
        try:
            event = from_structured(answer.event.encode())
            await send_event(event, "answer", sink=answer.sink, seconds=_ATTEMPT_SECONDS, tries=0)
        except NotSent as error:
            now = time.time()
            pause = _pause_before(answer.attempts, error.retry_after)
            if error.status not in NEVER_ACCEPTED and now + pause < answer.expires:
                logger.warning("answer %s stays in the outbox for %.1f s: %s", answer.id, pause, error)
                await self._write_attempt(_LATER, now + pause, answer.id, answer.sink)
                return ""
            refusal = str(error)
        except EventError as error:
            refusal = f"it cannot be read: {error}"
        else:
            refusal = ""
        if refusal:
            logger.error("answer %s is given up: %s", answer.id, refusal)
        await self._write_attempt(_REMOVE, answer.id, answer.sink)
        return refusal

    async def _write_attempt(self, statement: str, *values: object) -> None:
        """Store the outcome of an attempt. If that fails, the answer is sent again later."""
        with suppress(sqlite3.Error, OSError):
            await asyncio.to_thread(self._execute_statement, statement, *values)

    def _execute_statement(self, statement: str, *values: object) -> int:
        with self._open_file() as database:
            return database.execute(statement, values).rowcount

    def _store_leased(self, answer: _StoredAnswer, now: float) -> bool:
        """Store and lease an answer; `False` if another attempt has the lease."""
        with self._open_file() as database:
            (number,) = database.execute("SELECT count(*) FROM beckon_outbox").fetchone()
            if number >= _MOST:
                raise OSError(f"it is full ({_MOST} answers); see whether the Broker runs")
            database.execute(_PUT, (answer.id, answer.sink, answer.event, answer.expires, now))
            lease = (now + _LEASE_SECONDS, answer.id, answer.sink, now)
            return database.execute(_LEASE, lease).rowcount == 1

    def _lease_answer(self, answer: _StoredAnswer) -> bool:
        now = time.time()
        return self._execute_statement(_LEASE, now + _LEASE_SECONDS, answer.id, answer.sink, now) == 1

    def _due_answers(self) -> list[_StoredAnswer]:
        now = time.time()
        with self._open_file() as database:
            return [_StoredAnswer(*row) for row in database.execute(_DUE, (now, now, _AT_ONCE * 8))]

    def _seconds_until_due(self) -> float:
        """Return the seconds until the next answer is due, infinity for none."""
        with self._open_file() as database:
            (due,) = database.execute(_NEXT).fetchone()
        return float("inf") if due is None else float(due) - time.time()

    @contextmanager
    def _open_file(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction, creating it if needed.

        Only its owner has access to a new file.
        """
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        with closing(sqlite3.connect(self.path, timeout=5)) as database, database:
            database.execute(_MAKE)
            yield database


def _pause_before(attempts: int, retry_after: float | None) -> float:
    """Return the seconds before the next attempt.

    They double with each attempt up to `_LONGEST_PAUSE`, unless the Broker names more; up to a fifth is
    added at random.
    """
    doubled = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(attempts, 20))
    wanted = min(retry_after or 0, _LONGEST_RETRY_AFTER)
    return max(doubled, wanted) * random.uniform(1, 1.2)  # noqa: S311 - so that many do not meet
