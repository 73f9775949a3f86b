"""Waiting for the next item of a stream in slices, so that a silent stream can be kept alive."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")


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
    """A stream whose next item can be waited for a while, and is not lost when the wait ends."""

    def __init__(self, items: AsyncGenerator[Item, None]) -> None:
        self._items = items
        self._next: asyncio.Task[Item | None] | None = None

    async def ready(self, seconds: float) -> bool:
        """Whether the next item, the end or a failure has come within `seconds`."""
        done, _ = await asyncio.wait({self._coming()}, timeout=seconds)
        return bool(done)

    async def begin(self, seconds: float) -> None:
        """Wait for the first item at most `seconds`; raises what the stream raised instead of it."""
        coming = self._coming()
        if await self.ready(seconds) and (error := coming.exception()) is not None:
            raise error

    async def take(self) -> Item | None:
        """Return the next item, `None` at the end; raises what the stream raises."""
        item = await self._coming()
        self._next = None
        return item

    async def close(self) -> None:
        """Stop the stream, wherever it is."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.gather(self._next, return_exceptions=True)
        await self._items.aclose()

    def _coming(self) -> asyncio.Task[Item | None]:
        if self._next is None:
            self._next = asyncio.create_task(self._advance())
        return self._next

    async def _advance(self) -> Item | None:
        return await anext(self._items, None)
