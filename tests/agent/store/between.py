"""A store with something between it and who asks it."""

from collections.abc import Awaitable, Callable
from typing import Any

from beckon_agent.store.base import Store


class Between:
    """Passes every step of runs, journal and events through `intercept`, and all else to the store itself."""

    def __init__(self, store: Store) -> None:
        self.runs: Any = _Part(store.runs, self)
        self.journal: Any = _Part(store.journal, self)
        self.events: Any = _Part(store.events, self)
        self.conversations = store.conversations
        self.counters = store.counters
        self.feed = store.feed
        self.push = store.push
        self.owed_answers = store.owed_answers
        self.materials = store.materials
        self.history = store.history
        self.open_scratch = store.open_scratch

    async def aclose(self) -> None:
        """Leave the store open: it may be that of others, too."""

    async def intercept(self, name: str, call: Callable[[], Awaitable[Any]], *args: Any) -> Any:
        """Make a call of the real store."""
        return await call()


class _Part:
    def __init__(self, part: object, between: Between) -> None:
        self._part = part
        self._between = between

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        real = getattr(self._part, name)

        async def passed_on(*args: Any, **kwargs: Any) -> Any:
            return await self._between.intercept(name, lambda: real(*args, **kwargs), *args)

        return passed_on
