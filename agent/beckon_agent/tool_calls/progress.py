"""Progress reports of tools to listeners in this process."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from beckon_contract.cloudevents.events import CloudEvent, EventError

_LONGEST = 500  # characters of a message; the SDK sends no more
_LARGEST = 2.0**53  # beyond it, JSON's readers do not agree about a number


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """The progress of a call: `done` of `total`, in any unit. `total` is `None` if it is unknown."""

    done: float
    total: float | None = None
    message: str = ""


Result = TypeVar("Result")

OnReport = Callable[[ProgressReport], None]

_current: ContextVar[OnReport | None] = ContextVar("reports", default=None)


@contextmanager
def listen_to_reports(hear: OnReport) -> Iterator[None]:
    """Pass the reports of this task's call to `hear`."""
    token = _current.set(hear)
    try:
        yield
    finally:
        _current.reset(token)


def current_listener() -> OnReport | None:
    """Return the listener to the reports of this task's call."""
    return _current.get()


def read_report(event: CloudEvent) -> ProgressReport | None:
    """Return the report in an event, `None` for anything else.

    A bad report is no error, since nothing depends on it.
    """
    try:
        members = event.json()
    except EventError:
        return None
    if not isinstance(members, Mapping) or (done := _to_number(members.get("progress"))) is None:
        return None
    message = members.get("message")
    return ProgressReport(
        done, _to_number(members.get("total")), message[:_LONGEST] if isinstance(message, str) else ""
    )


def _to_number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        return None
    return value


class GrowingReports:
    """Passes on reports of growing progress only. Brokers may deliver two reports in the wrong order."""

    def __init__(self, pass_on: OnReport) -> None:
        self._take = pass_on
        self._done = float("-inf")

    def __call__(self, report: ProgressReport) -> None:
        """Pass a report on, unless an earlier one was further."""
        if report.done >= self._done:
            self._done = report.done
            self._take(report)


async def with_reports(work: Coroutine[object, object, Result]) -> AsyncGenerator[ProgressReport | Result]:
    """Yield the reports during some work, and then its result.

    Of unread reports, only the newest is yielded. Raises the errors of the work.
    """
    waiting: list[ProgressReport] = []
    news = asyncio.Event()

    def pass_report(report: ProgressReport) -> None:
        waiting[:] = [report]
        news.set()

    with listen_to_reports(pass_report):
        task = asyncio.create_task(work)
    task.add_done_callback(lambda _: news.set())
    try:
        while True:
            await news.wait()
            news.clear()
            if waiting:
                yield waiting.pop()
            if task.done():
                yield task.result()
                return
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
