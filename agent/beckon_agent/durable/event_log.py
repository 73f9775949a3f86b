"""The events of a run: their numbers, log, local followers and retention.

An event that an earlier process has published is not published again by the one that resumes the run.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Sequence

from beckon_agent.core.records import FINAL, StoredCall
from beckon_agent.core.run_events import (
    AnnotationAdded,
    AnswerDropped,
    CallFinished,
    CallProgressed,
    CallStarted,
    InputRequested,
    ReasoningDelta,
    RunEvent,
    RunFailed,
    RunFinished,
    RunSuspended,
    TextDelta,
    TurnNoted,
)
from beckon_agent.durable.base import event_from_document
from beckon_agent.store.base import EventLog, Store, StoreUnavailable
from beckon_agent.tool_calls.outcome import failed_outcome
from beckon_contract.failures import Reason


class EventNumbers:
    """Numbers a run's events from 1 on, and detects repeated ones."""

    def __init__(self) -> None:
        self.last = 0
        self._known: set[tuple[type, object]] = set()
        self._in_answer = False

    def add_earlier(self, event: RunEvent) -> None:
        """Add an event published by an earlier process."""
        self.last += 1
        self._count_event(event)

    @property
    def published_forms(self) -> frozenset[str]:
        """The event ids of the calls with a published form."""
        return frozenset(str(value) for kind, value in self._known if kind is InputRequested)

    def missing_events(self, turns: int) -> Sequence[RunEvent]:
        """Return the events to publish first when a run is resumed.

        `turns` is the number of its stored turns. The text of an answer is published before its turn is
        stored; so an answer without an end belongs either to a stored turn that was not published, or to
        none, and then it is void.
        """
        noted = [TurnNoted(step) for step in range(turns) if (TurnNoted, step) not in self._known]
        return noted or ([AnswerDropped()] if self._in_answer else [])

    def number_event(self, event: RunEvent) -> int | None:
        """Return the number of an event, `None` if it was published already."""
        key = event.identity
        if key is not None and key in self._known:
            return None
        self.last += 1
        self._count_event(event)
        return self.last

    def _count_event(self, event: RunEvent) -> None:
        key = event.identity
        if key is not None:
            self._known.add(key)
        self._in_answer = isinstance(event, TextDelta | ReasoningDelta | AnnotationAdded)


def is_end(event: RunEvent) -> bool:
    """True if no event ever follows this one."""
    return isinstance(event, RunFinished | RunFailed)


def is_last(event: RunEvent) -> bool:
    """True for an end or a suspension.

    No event follows a suspension before a decision or a late answer, and none ever follows an end.
    """
    return is_end(event) or isinstance(event, RunSuspended)


class Broadcast:
    """The events of one process's work on a run, for local followers.

    All events are kept, from the first on. Progress reports have no number of their own, and only the newest
    of a call in progress is kept.
    """

    def __init__(self) -> None:
        self._events: list[RunEvent] = []
        self._running: set[str] = set()
        self._reports: dict[str, CallProgressed] = {}
        self.over = False
        self._news = asyncio.Event()
        self.followers = 0

    @property
    def events(self) -> Sequence[RunEvent]:
        """All published events."""
        return self._events

    def publish(self, event: RunEvent) -> None:
        """Add the next event."""
        if isinstance(event, CallStarted):
            self._running.add(event.id)
        elif isinstance(event, CallFinished):
            self._running.discard(event.id)
            self._reports.pop(event.id, None)
        self._events.append(event)
        self._wake_followers()

    def publish_report(self, report: CallProgressed) -> None:
        """Publish the progress of a call to the present followers.

        They get it after the event of the call's start.
        """
        self._reports[report.id] = report
        self._wake_followers()

    def close(self) -> None:
        """End the broadcast: this process publishes nothing more of this run."""
        self.over = True
        self._wake_followers()

    def _wake_followers(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def follow(self, after: int = 0) -> AsyncGenerator[tuple[int, RunEvent]]:
        """Yield the events after a number and all later ones.

        It ends when this process publishes no more. A report has the number of the event before it.
        """
        number = after
        newest: dict[str, CallProgressed] = {}
        self.followers += 1
        try:
            while True:
                news = self._news
                while number < len(self._events):
                    number += 1
                    yield number, self._events[number - 1]
                for call, report in list(self._reports.items()):
                    if call in self._running and newest.get(call) is not report:
                        newest[call] = report
                        yield number, report
                if self.over:
                    return
                await news.wait()
        finally:
            self.followers -= 1


NEEDS_INPUT = "needs input: "
"""The beginning of the report on a call that waits for a person's input; the page knows it."""


class ReportsSeen:
    """The progress reports seen by one follower of a run."""

    def __init__(self) -> None:
        self._last: dict[str, CallProgressed] = {}

    def new_reports(self, calls: Sequence[StoredCall]) -> list[CallProgressed]:
        """Return the reports new to the follower."""
        events = [_progress_event(call) for call in calls]
        new = [report for report in events if self._last.get(report.id) != report]
        self._last |= {report.id: report for report in new}
        return new


def _progress_event(call: StoredCall) -> CallProgressed:
    """Return the last report of a call; a form that waits is one, for a stream without a word for forms."""
    if call.state == "input":
        message = f"{NEEDS_INPUT}{(call.input_request or {})['message']}"
        return CallProgressed(call.id, call.name, 0, None, message)
    report = call.report or {}
    return CallProgressed(
        call.id, call.name, report["progress"], report.get("total"), report.get("message") or ""
    )


_PAGE = 500


async def read_log(log: EventLog, run_id: str, after: int = 0) -> AsyncGenerator[tuple[int, RunEvent]]:
    """Yield the events of the log after a number."""
    number = after
    while page := await log.read_after(run_id, number, most=_PAGE):
        for number, document in page:
            yield number, event_from_document(document)


_AT_ONCE = 100
_HOUR = 3600.0
_LINGER = 5.0  # seconds; followers at other replicas look more often

logger = logging.getLogger(__name__)


class Housekeeping:
    """Ends overdue calls, and deletes old runs.

    Ended runs are stored for `keep_seconds`; `None` is for ever.
    """

    def __init__(self, store: Store, keep_seconds: float | None) -> None:
        self._store = store
        self._keep_seconds = keep_seconds
        self._purge_at = time.monotonic() + _HOUR

    async def run_forever(self, every: float) -> None:
        """Do the due work in intervals of `every` seconds, until cancelled."""
        while True:
            try:
                await self.run_once()
            except StoreUnavailable as error:
                logger.warning("the store does not answer: %s", error)
            await asyncio.sleep(every)

    async def delete_soon(self, run_id: str) -> None:
        """Delete an unkept run a few seconds after its end. If this fails, `purge` deletes it later."""
        await asyncio.sleep(_LINGER)
        try:
            run = await self._store.runs.get(run_id)
            if run is not None and run.status in FINAL:
                await self._store.runs.delete(run_id)
        except StoreUnavailable as error:
            logger.warning("run %s is deleted later: %s", run_id, error)

    async def run_once(self) -> None:
        """Do the due work; raises `StoreUnavailable`."""
        await self._end_waiting()
        if time.monotonic() >= self._purge_at:
            self._purge_at = time.monotonic() + _HOUR
            await self.purge_runs()

    async def purge_runs(self) -> int:
        """Delete the runs past their retention; return their number."""
        deleted = await self._store.runs.purge(self._keep_seconds)
        if deleted:
            logger.info("deleted %d runs that have ended long ago", deleted)
        return deleted

    async def _end_waiting(self) -> None:
        """Finish overdue calls as failed, with a timeout.

        Their tools have not answered in time, or no person has.
        """
        for run_id, call in await self._store.journal.list_overdue(most=_AT_ONCE):
            missing = (
                f"{call.name} requested input of a person, and no answer has come in time"
                if call.state == "input"
                else f"{call.name} took the call, and its answer has not come in time"
            )
            outcome = failed_outcome(Reason.TIMEOUT, missing)
            if await self._store.journal.finish_call(
                call.event_id, result=outcome.result, failed=True, seconds=None
            ):
                logger.warning("run %s: call %s: %s", run_id, call.event_id, missing)
