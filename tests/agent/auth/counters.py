"""Counters as the store keeps them, in memory: the double of `store.base.Counters`."""

import asyncio
import time
from collections import defaultdict

from beckon_agent.core.records import LimitDecision, ReservedLimit
from beckon_agent.store.base import StoreUnavailable


class CountersInMemory:
    """Sliding windows and places of one process; `now` may be moved, and `broken` makes every call fail."""

    def __init__(self) -> None:
        self.used: dict[str, list[tuple[float, int]]] = defaultdict(list)
        self.places: dict[str, dict[str, float]] = defaultdict(dict)
        self.reserved: dict[str, dict[str, tuple[float, int]]] = defaultdict(dict)
        self.passed = 0.0
        self.broken = False
        self.left = asyncio.Event()

    @property
    def now(self) -> float:
        return time.monotonic() + self.passed

    async def take_amount(self, key: str, amount: int, *, limit: int, window: float) -> LimitDecision:
        self._check()
        recent = self.used[key] = [one for one in self.used[key] if one[0] > self.now - window]
        used = sum(taken for _, taken in recent)
        if used + amount <= limit:
            if amount:
                recent.append((self.now, amount))
            return LimitDecision(True)
        freed = 0
        for at, taken in recent:
            freed += taken
            if used - freed + amount <= limit:
                return LimitDecision(False, max(0.0, at + window - self.now))
        return LimitDecision(False, window)

    async def reserve_amount(self, key: str, token: str, amount: int, limit: ReservedLimit) -> LimitDecision:
        held = self.reserved[key] = {who: one for who, one in self.reserved[key].items() if one[0] > self.now}
        if token not in held:
            taken = await self.take_amount(key, 0, limit=limit.limit - 1, window=limit.window)
            if not taken.allowed:
                return taken
            used = sum(amount for _, amount in self.used[key])
            if limit.behind_others and used + sum(one for _, one in held.values()) >= limit.limit:
                return LimitDecision(False, 2.0)
        held[token] = (self.now + limit.seconds, amount)
        return LimitDecision(True)

    async def settle_reservation(self, key: str, token: str, amount: int, *, window: float) -> None:
        self._check()
        self.reserved[key].pop(token, None)
        if amount:
            await self.take_amount(key, amount, limit=2**53, window=window)

    async def take_place(self, key: str, token: str, *, limit: int, seconds: float) -> LimitDecision:
        self._check()
        held = self.places[key] = {who: end for who, end in self.places[key].items() if end > self.now}
        if token in held or len(held) < limit:
            held[token] = self.now + seconds
            return LimitDecision(True)
        return LimitDecision(False, min(held.values()) - self.now)

    async def give_place_back(self, key: str, token: str) -> None:
        self._check()
        self.places[key].pop(token, None)
        self.left.set()

    def _check(self) -> None:
        if self.broken:
            raise StoreUnavailable("the test has broken it")
