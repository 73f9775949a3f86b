"""A queue of keys of changed objects, and the loop that writes them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from prometheus_client import Counter

from beckon_sources.api_types import ApiError, Refused, is_temporary

logger = logging.getLogger(__name__)

Item = TypeVar("Item", bound=tuple[str, ...])

STALE = frozenset((404, 409))
"""Answers to a write against another version than the present one."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds after a failed write; each is twice the one before


class KeyedQueue(Generic[Item]):
    """Each item is queued once, however often it changes before it is written.

    An item is written by one worker at a time: of two writes against one version the API server refuses the
    second. What is queued while it is written is written afterwards.
    """

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Item] = asyncio.Queue()
        self._queued: set[Item] = set()
        self._in_work: set[Item] = set()
        self._timers: dict[Item, asyncio.TimerHandle] = {}
        self._failures: dict[Item, int] = {}

    def __len__(self) -> int:
        """Return how many items are queued."""
        return len(self._queued)

    def put(self, item: Item) -> None:
        """Queue an item."""
        if item not in self._queued:
            self._queued.add(item)
            if item not in self._in_work:
                self._queue.put_nowait(item)

    def put_later(self, item: Item, seconds: float) -> None:
        """Queue an item after some seconds, or sooner if an earlier call says so."""
        loop, known = asyncio.get_running_loop(), self._timers.get(item)
        if known is not None and known.when() <= loop.time() + seconds:
            return
        if known is not None:
            known.cancel()
        self._timers[item] = loop.call_later(seconds, self._put_due, item)

    async def write_items(
        self,
        write: Callable[[Item], Awaitable[None]],
        *,
        at_once: int,
        leads: Callable[[], bool],
        what: str,
        failures: Counter,
    ) -> None:
        """Write the items, `at_once` at a time, until cancelled; skip them while another replica leads.

        After an `ApiError` of `write` an item is queued again, each time after a longer pause. `what` is
        what is written, for the logs.
        """

        async def write_next() -> None:
            item = await self.take()
            try:
                if leads():  # a replica that begins to lead queues everything
                    await write(item)
                self._failures.pop(item, None)
            except Exception as error:
                if self._is_failure(item, error, what):
                    failures.inc()
            finally:
                self.finish(item)

        async def write_all() -> None:
            while True:
                await write_next()

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(write_all())

    async def take(self) -> Item:
        """Wait for the next item, which is in work until `finish`."""
        item = await self._queue.get()
        self._queued.discard(item)
        self._in_work.add(item)
        return item

    def finish(self, item: Item) -> None:
        """End the work on an item; if it was queued meanwhile, it is its turn again."""
        self._in_work.discard(item)
        if item in self._queued:
            self._queue.put_nowait(item)

    def _is_failure(self, item: Item, error: Exception, what: str) -> bool:
        """Log an error, and queue its item again if the API server may accept it later.

        Returns False for a write against an old version, which is no failure.
        """
        if not isinstance(error, ApiError):
            logger.error("%s %s was not written", what, "/".join(item), exc_info=error)
            return True
        before = self._failures.get(item, 0)
        self._failures[item] = before + 1
        self.put_later(item, min(_FIRST_PAUSE * 2 ** min(before, 10), _LONGEST_PAUSE))
        if isinstance(error, Refused) and error.status in STALE:
            logger.debug("%s %s has changed meanwhile", what, "/".join(item))
            return False
        level = logging.INFO if is_temporary(error) else logging.WARNING
        logger.log(level, "%s %s was not written, and will be later: %s", what, "/".join(item), error)
        return True

    def _put_due(self, item: Item) -> None:
        del self._timers[item]
        self.put(item)
