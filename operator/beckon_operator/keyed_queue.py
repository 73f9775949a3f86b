"""A queue of keys of changed objects."""

import asyncio
from collections.abc import Hashable
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)


class KeyedQueue(Generic[Item]):
    """Each item is queued once, however often it changes before it is taken."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Item] = asyncio.Queue()
        self._queued: set[Item] = set()

    def put(self, item: Item) -> None:
        """Queue an item."""
        if item not in self._queued:
            self._queued.add(item)
            self._queue.put_nowait(item)

    def put_later(self, item: Item, seconds: float) -> None:
        """Queue an item after some seconds."""
        asyncio.get_running_loop().call_later(seconds, self.put, item)

    async def take(self) -> Item:
        """Wait for the next item; it may be queued again at once."""
        item = await self._queue.get()
        self._queued.discard(item)
        return item
