"""Stores that fail once, or take their time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from beckon_agent.store.base import Store, StoreUnavailable


class _Stands:
    """In front of a store: what a test changes of it is passed through `around`."""

    def __init__(self, store: Store) -> None:
        self.runs: Any = _Part(store.runs, self)
        self.journal: Any = _Part(store.journal, self)
        self.events: Any = _Part(store.events, self)
        self.conversations = store.conversations
        self.counters = store.counters
        self.materials = store.materials
        self.scratch = store.scratch

    async def aclose(self) -> None:
        """Leave the store open: it is the others', too."""

    async def around(self, name: str, call: Callable[[], Awaitable[Any]], *args: Any) -> Any:
        """Make a call of the real store."""
        return await call()


class _Part:
    def __init__(self, part: object, stands: _Stands) -> None:
        self._part = part
        self._stands = stands

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        real = getattr(self._part, name)

        async def passed_on(*args: Any, **kwargs: Any) -> Any:
            return await self._stands.around(name, lambda: real(*args, **kwargs), *args)

        return passed_on


class Hiccup(_Stands):
    """Fails one call of a method; with `lands` what it asked for is stored all the same."""

    def __init__(self, store: Store, method: str, *, lands: bool) -> None:
        super().__init__(store)
        self._method = method
        self._lands = lands
        self.failed = False

    async def around(self, name: str, call: Callable[[], Awaitable[Any]], *args: Any) -> Any:
        """Fail the first call of the method."""
        if name != self._method or self.failed:
            return await call()
        self.failed = True
        if self._lands:
            await call()
        raise StoreUnavailable("the database does not answer for a moment")


class SlowLog(_Stands):
    """Holds the first piece of the log until it is let through; keeps what was stored, in its order,
    and the numbers with which the pieces of the log began.
    """

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.begun = asyncio.Event()
        self.through = asyncio.Event()
        self.stored: list[str] = []
        self.numbers: list[int] = []

    async def around(self, name: str, call: Callable[[], Awaitable[Any]], *args: Any) -> Any:
        """Hold the first `append`."""
        if name == "append" and not self.begun.is_set():
            self.begun.set()
            await self.through.wait()
        result = await call()
        self.stored.append(name)
        if name == "append":
            self.numbers.append(args[2])
        return result
