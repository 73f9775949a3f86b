"""Each call runs once, for brokers deliver events at least once.

Events are identified by source and id.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from beckon_tools.outcomes.ledger import CallKey, SharedOutcomes


class Busy(Exception):
    """The limit of running calls is reached; the caller should retry."""


class _Outcome(NamedTuple):
    data: bytes
    expires: float


class OnceOnly:
    """Remembers outcomes by call: at most `capacity` of them, `budget` bytes, for `ttl` seconds.

    Concurrent duplicates await the first. A run that raises is forgotten, so that a retry runs
    again. A run outlives the caller that hangs up: the retry that follows finds its outcome.
    With `shared`, all of this holds for the replicas together.
    """

    def __init__(
        self, capacity: int, budget: int, ttl: float, running: int, shared: SharedOutcomes | None = None
    ) -> None:
        self._capacity = capacity
        self._budget = budget
        self._ttl = ttl
        self._limit = running
        self._shared = shared
        self._running: dict[CallKey, asyncio.Task[bytes]] = {}
        self._known: OrderedDict[CallKey, _Outcome] = OrderedDict()  # the oldest first
        self._bytes = 0

    async def find_outcome(self, key: CallKey, run: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return the outcome for `key`, running `run` if it is unknown.

        Raises the exceptions of `run`, `Busy` if a new run would exceed the limit, and `Unavailable`.
        """
        self._forget_expired()
        known = self._known.get(key)
        if known is not None:
            return known.data
        task = self._running.get(key)
        if task is None:
            if len(self._running) >= self._limit:
                raise Busy
            task = asyncio.create_task(self._run_call(key, run))
            self._running[key] = task
        return await asyncio.shield(task)

    @property
    def running_calls(self) -> int:
        """The number of calls in progress."""
        return len(self._running)

    async def drain(self, seconds: float) -> None:
        """Wait for the runs in progress, at most `seconds`. Runs whose caller has hung up are included."""
        if self._running:
            await asyncio.wait(self._running.values(), timeout=seconds)

    async def close(self) -> None:
        """Close the shared outcomes."""
        if self._shared is not None:
            await self._shared.close()

    async def _run_call(self, key: CallKey, run: Callable[[], Awaitable[bytes]]) -> bytes:
        try:
            data = await (self._shared.find_outcome(key, run) if self._shared else run())
        finally:
            del self._running[key]
        self._known[key] = _Outcome(data, self._now() + self._ttl)
        self._bytes += len(data)
        self._forget_expired()
        return data

    def _forget_expired(self) -> None:
        now = self._now()
        while self._known:
            oldest = next(iter(self._known.values()))
            full = len(self._known) > self._capacity or self._bytes > self._budget
            if not full and oldest.expires > now:
                return
            self._known.popitem(last=False)
            self._bytes -= len(oldest.data)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
