"""Waiting for the next item of a stream in slices, so that a silent stream can be kept alive."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Paced(Generic[Item]):
    """A stream whose next item can be waited for a while, and is not lost when the wait ends."""

    def __init__(self, items: AsyncGenerator[Item, None]) -> None:
        self._items = items
        self._next: asyncio.Task[Item | None] | None = None

    async def ready(self, seconds: float) -> bool:
        """Whether the next item, or the end, has come within `seconds`."""
        if self._next is None:
            self._next = asyncio.create_task(self._advance())
        done, _ = await asyncio.wait({self._next}, timeout=seconds)
        return bool(done)

    async def take(self) -> Item | None:
        """Return the next item, `None` at the end; raises what the stream raises."""
        pending = self._next or asyncio.create_task(self._advance())
        self._next = None
        return await pending

    def failure(self) -> BaseException | None:
        """Return what the stream raised instead of its next item, if that is known already."""
        if self._next is None or not self._next.done() or self._next.cancelled():
            return None
        return self._next.exception()

    async def close(self) -> None:
        """Stop the stream, wherever it is."""
        if self._next is not None:
            self._next.cancel()
            await asyncio.wait({self._next})
        await self._items.aclose()

    async def _advance(self) -> Item | None:
        return await anext(self._items, None)
