"""How often each call came: a Broker repeats what failed or seemed to, and only the tool sees it."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from beckon_tools.outcomes.ledger import Unavailable
from beckon_tools.outcomes.shared import CallKey, SharedOutcomes

logger = logging.getLogger(__name__)

Times = Callable[[], Awaitable[int]]
"""Returns how often a call has come by now."""


class Deliveries:
    """Counts deliveries by call, of the `capacity` calls that came last.

    With `shared` the replicas count together. They count for people to look at: where that fails, what
    this process has seen is told.
    """

    def __init__(self, capacity: int, shared: SharedOutcomes | None = None) -> None:
        self._capacity = capacity
        self._shared = shared
        self._seen: OrderedDict[CallKey, int] = OrderedDict()  # the last to come at the end

    @asynccontextmanager
    async def arrival(self, key: CallKey) -> AsyncIterator[Times]:
        """Count a delivery, and say how many there were; what is shared is counted while the call runs."""
        self._seen[key] = self._seen.pop(key, 0) + 1
        if len(self._seen) > self._capacity:
            self._seen.popitem(last=False)
        counting = asyncio.create_task(self._count(self._shared, key)) if self._shared else None

        async def times() -> int:
            everywhere = await counting if counting else 1
            return max(everywhere, self._seen.get(key, 1))

        try:
            yield times
        finally:
            if counting:
                await asyncio.wait((counting,))

    async def _count(self, shared: SharedOutcomes, key: CallKey) -> int:
        try:
            return await shared.delivered(key)
        except Unavailable as error:
            logger.warning("a delivery of event %s is not counted with the others: %s", key.id, error)
            return 1
