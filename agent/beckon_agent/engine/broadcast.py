"""The events of one run that this process works on, for those who follow it here."""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from beckon_agent.engine.base import EngineEvent
from beckon_agent.runs import CallFinished, CallProgressed, CallStarted


class Broadcast:
    """Keeps every event of a leg of a run, from the first on, and wakes those who wait for the next.

    Reports of progress have no number of their own, and only the newest of a call that is under way is kept.
    """

    def __init__(self) -> None:
        self._events: list[EngineEvent] = []
        self._under_way: set[str] = set()
        self._reports: dict[str, CallProgressed] = {}
        self.over = False
        self._news = asyncio.Event()
        self.followers = 0

    @property
    def events(self) -> Sequence[EngineEvent]:
        """All events that were told."""
        return self._events

    def tell(self, event: EngineEvent) -> None:
        """Add the next event."""
        if isinstance(event, CallStarted):
            self._under_way.add(event.id)
        elif isinstance(event, CallFinished):
            self._under_way.discard(event.id)
            self._reports.pop(event.id, None)
        self._events.append(event)
        self._wake()

    def report(self, report: CallProgressed) -> None:
        """Tell how far a call has come, once it is told that it began, to those who follow then."""
        self._reports[report.id] = report
        self._wake()

    def close(self) -> None:
        """Say that this process tells nothing more of this run."""
        self.over = True
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def follow(self, after: int = 0) -> AsyncGenerator[tuple[int, EngineEvent]]:
        """Yield the events behind a number, and those to come, until this process tells no more.

        A report has the number of the event before it.
        """
        number = after
        heard: dict[str, CallProgressed] = {}
        self.followers += 1
        try:
            while True:
                news = self._news
                while number < len(self._events):
                    number += 1
                    yield number, self._events[number - 1]
                for call, report in list(self._reports.items()):
                    if call in self._under_way and heard.get(call) is not report:
                        heard[call] = report
                        yield number, report
                if self.over:
                    return
                await news.wait()
        finally:
            self.followers -= 1
