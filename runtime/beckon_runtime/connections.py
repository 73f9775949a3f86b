"""Connections of one port: counted, closed when idle or slow, and fewer than the process may open.

Anyone who reaches a port may open connections and send nothing, or a byte now and then. Without limits the
process runs out of files, and its health checks fail with everything else.
"""

import asyncio
import logging
import resource
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

_LEAST = 8
_SWEEP_SECONDS = 5.0
_LOG_SECONDS = 60.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of a port: connections at once, and waits in seconds."""

    total: int = 768
    per_client: int = 384
    receive_seconds: float = 30.0
    idle_seconds: float = 120.0

    @classmethod
    def within_files(
        cls,
        *,
        share: float,
        total: int = 0,
        per_client: int = 0,
        receive_seconds: float = 30.0,
        idle_seconds: float = 120.0,
        most: int = 8192,
    ) -> "ConnectionLimits":
        """Return limits below the process's limit of open files.

        `share` is the part of it for this port, `most` the limit if `total` is 0. A `per_client` of 0 is
        half of all.
        """
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        allowed = max(_LEAST, int(files * share)) if files != resource.RLIM_INFINITY else max(total, most)
        if total > allowed:
            logger.warning(
                "BECKON_MAX_CONNECTIONS is %d, and only %d files may be open: %d connections are taken; "
                "raise the limit of files (ulimit -n)",
                total,
                files,
                allowed,
            )
        number = min(total or most, allowed)
        return cls(number, min(per_client or max(1, number // 2), number), receive_seconds, idle_seconds)


class Connection(Protocol):
    """A connection as its port sees it; each method closes it."""

    def close_idle(self) -> None:
        """Close, because no request is being received or answered, or to make room."""

    def close_slow(self) -> None:
        """Close, because a request did not arrive in time."""

    def abort(self) -> None:
        """Close and drop unsent bytes, because the client does not read them."""


class Connections:
    """The connections of one port, by their state.

    A connection is idle, or receives a request, or serves one. Those serving one are never closed here,
    unless their client stops reading: an answer may take minutes.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._client_of: dict[Connection, str] = {}
        self._clients: Counter[str] = Counter()
        # In the order of their times, so that the first is the oldest.
        self._idle: dict[Connection, float] = {}
        self._receiving: dict[Connection, float] = {}
        self._stuck: dict[Connection, float] = {}
        self._refused: dict[Connection, float] = {}
        # Those that never sent a whole request: the first to go when there is no room.
        self._new: dict[Connection, None] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._logged = float("-inf")
        shortest = min(limits.receive_seconds, limits.idle_seconds)
        self._pause = min(_SWEEP_SECONDS, max(0.01, shortest / 4))

    def __len__(self) -> int:
        return len(self._client_of)

    def add(self, connection: Connection, client: str) -> bool:
        """Add a connection of a client address; `False` if there is no room.

        If the port or the client is at its limit, the connection replaces one that serves no request.
        """
        full = len(self._client_of) >= self.limits.total
        if full or self._clients[client] >= self.limits.per_client:
            replaced = next(self._replaceable(None if full else client), None)
            self._log_full("all clients" if full else client, refused=replaced is None)
            if replaced is None:
                return False
            self.remove(replaced)
            replaced.close_idle()
        self._client_of[connection] = client
        self._clients[client] += 1
        self._new[connection] = None
        self.idle(connection)
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(self._pause, self._sweep)
        return True

    def remove(self, connection: Connection) -> None:
        """Forget a connection; an unknown one is no error."""
        client = self._client_of.pop(connection, None)
        if client is None:
            return
        self._clients[client] -= 1
        if not self._clients[client]:
            del self._clients[client]
        for waiting in (self._idle, self._receiving, self._stuck, self._refused):
            waiting.pop(connection, None)
        self._new.pop(connection, None)
        if not self._client_of and self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None

    def idle(self, connection: Connection) -> None:
        """Note a connection waiting for a request."""
        if connection in self._client_of:
            self._receiving.pop(connection, None)
            self._move(connection, self._idle)

    def receiving(self, connection: Connection) -> None:
        """Note the beginning of a request."""
        if connection in self._client_of:
            self._idle.pop(connection, None)
            self._move(connection, self._receiving)

    def serving(self, connection: Connection) -> None:
        """Note a complete request, now to be answered."""
        self._idle.pop(connection, None)
        self._receiving.pop(connection, None)
        self._new.pop(connection, None)

    def stuck(self, connection: Connection) -> None:
        """Note a client not reading its answer."""
        if connection in self._client_of:
            self._move(connection, self._stuck)

    def flowing(self, connection: Connection) -> None:
        """Note a client reading again."""
        self._stuck.pop(connection, None)

    def refused(self, connection: Connection) -> None:
        """Note the last answer as sent; the next sweep closes the connection.

        The client may close it before.
        """
        self.serving(connection)
        if connection in self._client_of:
            self._move(connection, self._refused)

    def _move(self, connection: Connection, waiting: dict[Connection, float]) -> None:
        waiting.pop(connection, None)
        waiting[connection] = time.monotonic()

    def _replaceable(self, client: str | None) -> Iterator[Connection]:
        """Yield the connections to close for a new one, in order of preference.

        They are those of one client, or of all for `None`.
        """
        for waiting in (self._refused, self._new, self._idle, self._receiving):
            for connection in waiting:
                if client is None or self._client_of[connection] == client:
                    yield connection

    def _sweep(self) -> None:
        """Close the connections waiting too long; one timer serves them all."""
        self._sweeper = asyncio.get_running_loop().call_later(self._pause, self._sweep)
        now = time.monotonic()
        for connection in list(_older(self._idle, now - self.limits.idle_seconds)):
            self._idle.pop(connection, None)
            connection.close_idle()
        for connection in list(_older(self._receiving, now - self.limits.receive_seconds)):
            self._receiving.pop(connection, None)
            connection.close_slow()
        for connection in list(_older(self._stuck, now - self.limits.idle_seconds)):
            self._stuck.pop(connection, None)
            connection.abort()
        for connection in list(_older(self._refused, now - self._pause)):
            self._refused.pop(connection, None)
            connection.abort()

    def _log_full(self, whose: str, *, refused: bool) -> None:
        """Warn of a reached limit, at most once a minute.

        A flood of connections must not become a flood of logs.
        """
        now = time.monotonic()
        if now < self._logged + _LOG_SECONDS:
            return
        self._logged = now
        number, name = (
            (self.limits.total, "BECKON_MAX_CONNECTIONS")
            if whose == "all clients"
            else (self.limits.per_client, "BECKON_MAX_CONNECTIONS_PER_CLIENT")
        )
        logger.warning(
            "connection limit reached (%d of %s): new connections %s; if the clients are right, raise %s",
            number,
            whose,
            "get 503" if refused else "take the place of idle ones",
            name,
        )


def _older(waiting: dict[Connection, float], limit: float) -> Iterator[Connection]:
    for connection, since in waiting.items():
        if since > limit:
            return
        yield connection
