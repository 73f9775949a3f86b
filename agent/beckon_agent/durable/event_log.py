"""The events of a run: their numbers, their log, and those who follow it here.

An event that an earlier process has published is not published again by the one that resumes the run.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence

from beckon_agent.core.model_types import ReasoningDelta, TextDelta
from beckon_agent.core.records import StoredCall
from beckon_agent.core.run_types import (
    ApprovalRequested,
    CallFinished,
    CallProgressed,
    CallStarted,
    ClientCallRequested,
    RunFinished,
    RunSuspended,
)
from beckon_agent.durable.base import AnswerDropped, EngineEvent, RunFailed, TurnNoted
from beckon_agent.durable.serialization import event_from_document
from beckon_agent.store.base import EventLog

EventKey = tuple[type, object]


class EventNumbers:
    """Numbers the events of a run from 1 on, and knows those that were told already."""

    def __init__(self) -> None:
        self.last = 0
        self._known: set[EventKey] = set()
        self._in_answer = False

    def recall(self, event: EngineEvent) -> None:
        """Take an event that an earlier process told."""
        self.last += 1
        self._note(event)

    def missing(self, turns: int) -> Sequence[EngineEvent]:
        """Return what has to be told first by who goes on with a run of so many stored turns.

        What the model says is told before its turn is stored; so an answer that is in the middle
        belongs to a stored turn that was not told of, or to none, and then it is void.
        """
        noted = [TurnNoted(step) for step in range(turns) if (TurnNoted, step) not in self._known]
        return noted or ([AnswerDropped()] if self._in_answer else [])

    def number(self, event: EngineEvent) -> int | None:
        """Return the number of an event, `None` for one that was told already."""
        key = _event_key(event)
        if key is not None and key in self._known:
            return None
        self.last += 1
        self._note(event)
        return self.last

    def _note(self, event: EngineEvent) -> None:
        key = _event_key(event)
        if key is not None:
            self._known.add(key)
        self._in_answer = isinstance(event, TextDelta | ReasoningDelta)


def _event_key(event: EngineEvent) -> EventKey | None:
    """Return what makes an event the same as one of an earlier process, `None` where each is another."""
    match event:
        case CallStarted(id=call_id) | ClientCallRequested(id=call_id) | CallFinished(id=call_id):
            return type(event), call_id
        case ApprovalRequested(event_id=event_id):
            return type(event), event_id
        case TurnNoted(step=step):
            return type(event), step
        case RunFinished() | RunFailed():
            return type(event), ""
        case _:
            return None


def is_end(event: EngineEvent) -> bool:
    """Whether nothing ever follows an event."""
    return isinstance(event, RunFinished | RunFailed)


def is_last(event: EngineEvent) -> bool:
    """Whether nothing follows an event before somebody else acts."""
    return is_end(event) or isinstance(event, RunSuspended)


class Broadcast:
    """Keeps every event of a leg of a run, from the first on, and wakes those who wait for the next.

    Reports of progress have no number of their own, and only the newest of a call that is under way is kept.
    """

    def __init__(self) -> None:
        self._events: list[EngineEvent] = []
        self._running: set[str] = set()
        self._reports: dict[str, CallProgressed] = {}
        self.over = False
        self._news = asyncio.Event()
        self.followers = 0

    @property
    def events(self) -> Sequence[EngineEvent]:
        """All events that were told."""
        return self._events

    def publish(self, event: EngineEvent) -> None:
        """Add the next event."""
        if isinstance(event, CallStarted):
            self._running.add(event.id)
        elif isinstance(event, CallFinished):
            self._running.discard(event.id)
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
                    if call in self._running and heard.get(call) is not report:
                        heard[call] = report
                        yield number, report
                if self.over:
                    return
                await news.wait()
        finally:
            self.followers -= 1


class ReportsSeen:
    """What one follower of a run has heard of that already."""

    def __init__(self) -> None:
        self._last: dict[str, CallProgressed] = {}

    def news(self, calls: Sequence[StoredCall]) -> list[CallProgressed]:
        """Return the reports that are new to it."""
        found = [_progress_event(call) for call in calls if call.report]
        new = [report for report in found if self._last.get(report.id) != report]
        self._last |= {report.id: report for report in new}
        return new


def _progress_event(call: StoredCall) -> CallProgressed:
    report = call.report or {}
    return CallProgressed(
        call.id, call.name, report["progress"], report.get("total"), report.get("message") or ""
    )


_PAGE = 500


async def read_log(log: EventLog, run_id: str, after: int = 0) -> AsyncGenerator[tuple[int, EngineEvent]]:
    """Yield what is in the log behind a number."""
    number = after
    while page := await log.after(run_id, number, most=_PAGE):
        for number, document in page:
            yield number, event_from_document(document)
