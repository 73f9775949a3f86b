"""The events of one run that this process works on, for those who follow it here."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from beckon_agent.engine.base import EngineEvent


class Broadcast:
    """Keeps every event of a leg of a run, from the first on, and wakes those who wait for the next."""

    def __init__(self) -> None:
        self._events: list[EngineEvent] = []
        self.over = False
        self._news = asyncio.Event()
        self.followers = 0

    @property
    def events(self) -> Sequence[EngineEvent]:
        """All events that were told."""
        return self._events

    def tell(self, event: EngineEvent) -> None:
        """Add the next event."""
        self._events.append(event)
        self._wake()

    def close(self) -> None:
        """Say that this process tells nothing more of this run."""
        self.over = True
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def follow(self, after: int = 0) -> AsyncGenerator[tuple[int, EngineEvent]]:
        """Yield the events behind a number, and those to come, until this process tells no more."""
        number = after
        self.followers += 1
        try:
            while True:
                news = self._news
                while number < len(self._events):
                    number += 1
                    yield number, self._events[number - 1]
                if self.over:
                    return
                await news.wait()
        finally:
            self.followers -= 1
