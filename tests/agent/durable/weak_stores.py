"""Stores that fail once, are slow, have a slow reader, or a quick person."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from beckon_agent.core.records import LogEntries
from beckon_agent.store.base import Store, StoreUnavailable
from tests.agent.store.between import Between


class Hiccup(Between):
    """Fails one call of a method; with `lands` its change is stored all the same."""

    def __init__(self, store: Store, method: str, *, lands: bool) -> None:
        super().__init__(store)
        self._method = method
        self._lands = lands
        self.failed = False

    async def intercept(self, name: str, call: Callable[[], Awaitable[Any]], *args: Any) -> Any:
        """Fail the first call of the method."""
        if name != self._method or self.failed:
            return await call()
        self.failed = True
        if self._lands:
            await call()
        raise StoreUnavailable("the database does not answer for a moment")


class SlowLog(Between):
    """Holds the first piece of the log until it is let through; keeps what was stored, in its order,
    and the numbers with which the pieces of the log began.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.begun = asyncio.Event()
        self.through = asyncio.Event()
        self.stored: list[str] = []
        self.numbers: list[int] = []

    async def intercept(self, name: str, call: Callable[[], Awaitable[Any]], *args: Any) -> Any:
        """Hold the first `append`."""
        if name == "append" and not self.begun.is_set():
            self.begun.set()
            await self.through.wait()
        result = await call()
        self.stored.append(name)
        self.numbers += [part.first for part in args if isinstance(part, LogEntries) and part.events]
        return result


class SlowReader(Between):
    """Holds what it has read of the log for the first time until it is let through."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.read = asyncio.Event()
        self.through = asyncio.Event()

    async def intercept(self, name: str, call: Callable[[], Awaitable[Any]], *args: Any) -> Any:
        """Hold the first answer of `read_after`."""
        result = await call()
        if name == "read_after" and not self.read.is_set():
            self.read.set()
            await self.through.wait()
        return result


class QuickPerson(Between):
    """Approves the first call of a run as soon as the run is suspended.

    Both are between the renewal and the claim of a beat. The step that suspends the run ends after the claim.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._renewed, self._approved, self._claimed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def intercept(self, name: str, call: Callable[[], Awaitable[Any]], *args: Any) -> Any:
        """Order the first suspension and the beat."""
        if self._claimed.is_set():
            return await call()
        if name == "suspend":
            await self._renewed.wait()
        result = await call()
        if name == "renew_leases":
            self._renewed.set()
            await self._approved.wait()
        elif name == "suspend":
            await self.journal.store_decision(f"{args[0]}.0.0", "approved", by="ann")
            self._approved.set()
            await self._claimed.wait()
        elif name == "claim_runs" and result:
            self._claimed.set()
        return result
