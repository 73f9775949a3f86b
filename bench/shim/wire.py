"""A lean HTTP/1.1 client for benchmarks: raw protocols, one request at a time a connection."""

import asyncio
import re
from collections import deque
from collections.abc import Callable
from typing import cast

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)

Done = Callable[[int, bytes], None]


def request(path: str, headers: list[tuple[str, str]], body: bytes, host: str = "localhost") -> bytes:
    """Return the bytes of a POST."""
    lines = [f"POST {path} HTTP/1.1", f"host: {host}"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines += [f"content-length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def split_message(buffer: bytes) -> tuple[bytes, bytes, int] | None:
    """Return head, body and total length of the first message in the buffer, `None` until it is whole."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = buffer[:end]
    declared = _LENGTH.search(head)
    length = int(declared[1]) if declared else 0
    total = end + 4 + length
    return None if len(buffer) < total else (head, buffer[end + 4 : total], total)


class Connection(asyncio.Protocol):
    """One kept-alive connection; `send` a request, get `done(status, body)`; status 0 when it is lost."""

    def __init__(self) -> None:
        self._buffer = b""
        self._done: Done | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # uvloop's transports are not subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def send(self, message: bytes, done: Done) -> None:
        """Send one request; the one before must be answered."""
        self._done = done
        cast(asyncio.Transport, self._transport).write(message)

    def data_received(self, data: bytes) -> None:
        """Take bytes until the answer is whole."""
        self._buffer = self._buffer + data if self._buffer else data
        message = split_message(self._buffer)
        if message is None or self._done is None:
            return
        head, body, total = message
        self._buffer = self._buffer[total:]
        done, self._done = self._done, None
        done(int(head[9:12]), body)

    def connection_lost(self, exc: Exception | None) -> None:
        """Report to the waiting caller that nothing will come."""
        done, self._done = self._done, None
        if done is not None:
            done(0, b"")

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()


class Pool:
    """Connections to one address, at most `limit`; what exceeds them queues."""

    def __init__(self, host: str, port: int, limit: int) -> None:
        self._address = (host, port)
        self._limit = limit
        self._idle: list[Connection] = []
        self._all: list[Connection] = []
        self._queue: deque[tuple[bytes, Done]] = deque()
        self._opening = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, count: int) -> None:
        """Open connections ahead of time, 256 at once."""
        while len(self._all) < count:
            missing = min(256, count - len(self._all))
            await asyncio.gather(*(self._open() for _ in range(missing)))

    def send(self, message: bytes, done: Done) -> None:
        """Send on a free connection, or as soon as there is one."""
        if self._idle:
            self._on(self._idle.pop(), message, done)
            return
        self._queue.append((message, done))
        if len(self._all) + self._opening < self._limit:
            self._opening += 1
            task = asyncio.get_running_loop().create_task(self._grow())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Close every connection."""
        for connection in self._all:
            connection.close()

    async def _grow(self) -> None:
        try:
            await self._open()
        finally:
            self._opening -= 1

    async def _open(self) -> None:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, *self._address)
        self._all.append(connection)
        self._free(connection)

    def _on(self, connection: Connection, message: bytes, done: Done) -> None:
        def answered(status: int, body: bytes) -> None:
            if status:
                self._free(connection)
            else:
                self._all.remove(connection)
            done(status, body)

        connection.send(message, answered)

    def _free(self, connection: Connection) -> None:
        if self._queue:
            self._on(connection, *self._queue.popleft())
        else:
            self._idle.append(connection)
