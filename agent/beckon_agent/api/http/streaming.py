"""Server-sent events: keep-alive comments, and an end with the client.

The work behind a stream ends when its client hangs up.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Coroutine
from dataclasses import asdict, dataclass
from typing import Generic, TypeVar

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

KEEP_ALIVE = b": keep-alive\n\n"
"""The comment among server-sent events that says that the stream lives."""

_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class EventStream(StreamingResponse):
    """Sends the chunks as they come, and always closes their generator.

    Starlette's own streaming cancels a task group, in which a generator cannot await while it cleans up.
    A client that is connected and reads nothing for `stalled` seconds counts as disconnected.
    """

    media_type = "text/event-stream"

    def __init__(self, chunks: AsyncGenerator[bytes], stalled: float) -> None:
        super().__init__(chunks, headers=_HEADERS)
        self._chunks = chunks
        self._stalled = stalled

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the whole answer."""
        try:
            await cancel_on_hang_up(receive, self._send_chunks(send))
        except ClientGone:
            return
        finally:
            await self._chunks.aclose()

    async def _send_chunks(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for chunk in self._chunks:
            async with asyncio.timeout(self._stalled):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def event_bytes(name: str, document: object) -> bytes:
    """Return a server-sent event of this name."""
    # ASCII: some readers of lines take other characters for the end of one, too.
    return f"event: {name}\ndata: {json.dumps(document, default=asdict)}\n\n".encode("ascii")


Item = TypeVar("Item")

_AHEAD = 16  # items that are read before anybody takes them


@dataclass(frozen=True, slots=True)
class StreamPace:
    """The time limits of a stream, in seconds."""

    first_event: float = 10.0
    """How long the status waits for the first event: a failure until then is a status of its own."""

    keep_alive: float = 15.0
    """The silence after which a comment is sent; proxies cut a connection after 30 to 60 seconds."""

    stalled: float = 60.0
    """How long a client may take nothing of what is sent to it."""


class PacedStream(Generic[Item]):
    """A stream with timed waits for the next item.

    An item is not lost when a wait ends. One task reads the stream, a little ahead of its consumer: a
    task per item would cost as much as all other work on it.
    """

    def __init__(self, items: AsyncGenerator[Item, None]) -> None:
        self._items = items
        self._reading: asyncio.Task[None] | None = None
        self._came: deque[Item] = deque()
        self._over = False
        self._failure: BaseException | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None

    async def is_ready(self, seconds: float | None) -> bool:
        """Return True if an item, the end or a failure has come.

        It waits for at most `seconds`, without limit for `None`.
        """
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_ahead())
        if self._came or self._over:
            return True
        loop = asyncio.get_running_loop()
        self._waiting = waiting = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, _settle_future, waiting)
        try:
            await waiting
        finally:
            self._waiting = None
            if timer is not None:
                timer.cancel()
        return bool(self._came) or self._over

    async def wait_for_first(self, seconds: float) -> None:
        """Wait for the first item, at most `seconds`. Raises the stream's failure if that comes first."""
        if await self.is_ready(seconds) and not self._came and self._failure is not None:
            raise self._failure

    async def take_item(self) -> Item | None:
        """Return the next item, `None` at the end. Raises the stream's failure."""
        await self.is_ready(None)
        if not self._came:
            self._raise_failure()
            return None
        item = self._came.popleft()
        self._make_room()
        return item

    async def yield_batches(self, keep_alive: float) -> AsyncGenerator[list[Item]]:
        """Yield the items in batches as they come.

        An empty batch comes after every `keep_alive` seconds without an item. Raises the stream's failure
        after its last item.
        """
        while True:
            while not await self.is_ready(keep_alive):
                yield []
            if not self._came:
                self._raise_failure()
                return
            items = list(self._came)
            self._came.clear()
            self._make_room()
            yield items

    async def close(self) -> None:
        """Stop the stream, wherever it is."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._items.aclose()

    async def _read_ahead(self) -> None:
        try:
            async for item in self._items:
                self._came.append(item)
                self._wake_reader()
                if len(self._came) >= _AHEAD:
                    self._room = asyncio.get_running_loop().create_future()
                    await self._room
        except asyncio.CancelledError as error:
            self._failure = error
            raise
        except Exception as error:
            self._failure = error
        finally:
            self._over = True
            self._wake_reader()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _wake_reader(self) -> None:
        if self._waiting is not None:
            _settle_future(self._waiting)

    def _make_room(self) -> None:
        if self._room is not None:
            _settle_future(self._room)


def _settle_future(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


Result = TypeVar("Result")


class ClientGone(Exception):
    """The client hung up before the end of its answer."""


async def cancel_on_hang_up(receive: Receive, work: Coroutine[object, object, Result]) -> Result:
    """Return the result of some work, unless the client hangs up.

    In that case the work is cancelled and `ClientGone` raised. The body of the request must have been
    read. Nothing of the work is left when this returns.
    """
    working = asyncio.create_task(work)
    watching = asyncio.create_task(_hang_up(receive))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    finally:
        working.cancel()
        watching.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
