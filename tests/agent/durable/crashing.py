"""A store in front of the real one, after whose nth note its process is as good as dead."""

from collections.abc import Awaitable, Callable
from typing import Any

from beckon_agent.store.base import Store, StoreUnavailable


class Crashing:
    """Lets so many notes through; with `lands` the next one is stored, too, before nothing works any more."""

    def __init__(self, store: Store, notes: int, *, lands: bool) -> None:
        self._left = notes
        self._lands = lands
        self._dies = self.dead = False
        self.runs: Any = _Watched(store.runs, self, {"end_run", "suspend"})
        self.journal: Any = _Watched(
            store.journal, self, {"add_turn", "mark_sent", "store_input_request", "finish_call"}
        )
        self.events: Any = _Watched(store.events, self, set())
        self.materials: Any = _Watched(store.materials, self, set())
        self.history = store.history
        self.conversations = store.conversations
        self.counters = store.counters
        self.feed = store.feed
        self.push = store.push
        self.owed_answers = store.owed_answers

    async def open_scratch(self) -> Store:
        """No one replays here."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Leave the store open: it is the others', too."""

    async def pass_on(self, call: Callable[[], Awaitable[Any]], *, counts: bool) -> Any:
        """Make a call of the real store, unless the process is dead by now."""
        if self._dies or self.dead:
            raise StoreUnavailable("this process is dead")
        if not counts:
            return await call()
        self._left -= 1
        if self._left >= 0:
            return await call()
        self._dies = True
        try:
            if self._lands:
                await call()
        finally:
            self.dead = True  # not before its last note has landed: a test looks at what is left then
        raise StoreUnavailable("this process dies here")


class _Watched:
    def __init__(self, part: object, crashing: Crashing, counted: set[str]) -> None:
        self._part = part
        self._crashing = crashing
        self._counted = counted

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        real = getattr(self._part, name)

        async def passed_on(*args: Any, **kwargs: Any) -> Any:
            return await self._crashing.pass_on(lambda: real(*args, **kwargs), counts=name in self._counted)

        return passed_on
