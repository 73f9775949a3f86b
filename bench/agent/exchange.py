"""HTTP exchanges on one open connection, one at a time; each has the time of its first word."""

import asyncio
import time
from typing import cast

import httptools

_STALL_SECONDS = 120.0


class Answered:
    """What came: the status and the body, and the seconds to the first word and to the end.

    Status 0: the connection was lost, or nothing came in time.
    """

    def __init__(self) -> None:
        self.status = 0
        self.body = b""
        self.first = 0.0
        self.seconds = 0.0


class Connection(asyncio.Protocol):
    """A connection to one service."""

    def __init__(self, first_word: bytes) -> None:
        self._first_word = first_word
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._answered = Answered()
        self._whole: asyncio.Future[None] | None = None
        self._begun = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        # uvloop's transports are not subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    async def exchange(self, message: bytes) -> Answered:
        """Send a request and return its whole answer."""
        self._answered, self._body = Answered(), []
        self._parser = httptools.HttpResponseParser(self)
        self._whole = asyncio.get_running_loop().create_future()
        self._begun = time.perf_counter()
        if self._transport is None or self._transport.is_closing():
            return self._answered
        self._transport.write(message)
        try:
            async with asyncio.timeout(_STALL_SECONDS):
                await self._whole
        except TimeoutError:
            self.close()
            return self._answered
        answered = self._answered
        answered.seconds = time.perf_counter() - self._begun
        answered.body = b"".join(self._body)
        return answered

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Take bytes of an answer."""
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        """Take a piece of the body."""
        if not self._answered.first and self._first_word in data:
            self._answered.first = time.perf_counter() - self._begun
        self._body.append(data)

    def on_message_complete(self) -> None:
        """Note that the answer is whole."""
        self._answered.status = self._parser.get_status_code()
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        """End what waits; its status stays 0."""
        self._end()

    def _end(self) -> None:
        if self._whole is not None and not self._whole.done():
            self._whole.set_result(None)


async def connect(port: int, first_word: str) -> Connection:
    """Open a connection to a port of this machine."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection(first_word.encode()), "127.0.0.1", port)
    return connection
