"""Waiting for the next item of a stream in slices, so that a silent stream can be kept alive."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")

_AHEAD = 16  # items that are read before anybody takes them


@dataclass(frozen=True, slots=True)
class Pace:
    """The seconds in which a stream begins, tells that it lives, and is given up."""

    first_event: float = 10.0
    """How long the status waits for the first event: a failure until then is a status of its own."""

    keep_alive: float = 15.0
    """The silence after which a comment is sent; proxies cut a connection after 30 to 60 seconds."""

    stalled: float = 60.0
    """How long a client may take nothing of what is sent to it."""


class Paced(Generic[Item]):
    """A stream whose next item can be waited for a while, and is not lost when the wait ends.

    One task reads it, a little ahead of who takes the items: a task for each would cost as much as all
    that is done with it.
    """

    def __init__(self, items: AsyncGenerator[Item, None]) -> None:
        self._items = items
        self._reading: asyncio.Task[None] | None = None
        self._came: deque[Item] = deque()
        self._over = False
        self._failure: BaseException | None = None
        self._waiting: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None

    async def ready(self, seconds: float | None) -> bool:
        """Whether the next item, the end or a failure has come within `seconds`."""
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
        if self._came or self._over:
            return True
        loop = asyncio.get_running_loop()
        self._waiting = waiting = loop.create_future()
        timer = None if seconds is None else loop.call_later(seconds, _settle, waiting)
        try:
            await waiting
        finally:
            self._waiting = None
            if timer is not None:
                timer.cancel()
        return bool(self._came) or self._over

    async def begin(self, seconds: float) -> None:
        """Wait for the first item at most `seconds`; raises what the stream raised instead of it."""
        if await self.ready(seconds) and not self._came and self._failure is not None:
            raise self._failure

    async def take(self) -> Item | None:
        """Return the next item, `None` at the end; raises what the stream raises."""
        await self.ready(None)
        if not self._came:
            self._end()
            return None
        item = self._came.popleft()
        self._make_room()
        return item

    async def take_all(self) -> list[Item]:
        """Return the items that are there, none at the end alone; raises what the stream raises."""
        await self.ready(None)
        if not self._came:
            self._end()
        items = list(self._came)
        self._came.clear()
        self._make_room()
        return items

    async def told(self, keep_alive: float) -> AsyncGenerator[list[Item]]:
        """Yield the items as they come, and none of them whenever there was none for so many seconds."""
        while True:
            while not await self.ready(keep_alive):
                yield []
            items = await self.take_all()
            if not items:
                return
            yield items

    async def close(self) -> None:
        """Stop the stream, wherever it is."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._items.aclose()

    async def _read(self) -> None:
        try:
            async for item in self._items:
                self._came.append(item)
                self._tell()
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
            self._tell()

    def _end(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _tell(self) -> None:
        if self._waiting is not None:
            _settle(self._waiting)

    def _make_room(self) -> None:
        if self._room is not None:
            _settle(self._room)


def _settle(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
