"""Progress reports of tools to listeners in this process."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import isfinite
from typing import TypeVar

from beckon_contract.events import CloudEvent, EventError

_LONGEST = 500  # characters of a message; the SDK sends no more


@dataclass(frozen=True, slots=True)
class ProgressReport:
    """How far a call has come: so much of `total`, in whatever unit, or of nobody knows how much."""

    done: float
    total: float | None = None
    message: str = ""


Result = TypeVar("Result")

OnReport = Callable[[ProgressReport], None]

_current: ContextVar[OnReport | None] = ContextVar("reports", default=None)


@contextmanager
def listen_to_reports(hear: OnReport) -> Iterator[None]:
    """Hear the reports of the call that this task makes."""
    token = _current.set(hear)
    try:
        yield
    finally:
        _current.reset(token)


def current_listener() -> OnReport | None:
    """Return who hears the reports of the call that this task makes."""
    return _current.get()


def read_report(event: CloudEvent) -> ProgressReport | None:
    """Return what a report says; `None` for what is none, since nothing depends on it."""
    try:
        members = event.json()
    except EventError:
        return None
    if not isinstance(members, Mapping) or (done := _number(members.get("progress"))) is None:
        return None
    message = members.get("message")
    return ProgressReport(
        done, _number(members.get("total")), message[:_LONGEST] if isinstance(message, str) else ""
    )


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return value


class Latest:
    """Lets through what goes on from the report before: Brokers may deliver two in the wrong order."""

    def __init__(self, hear: OnReport) -> None:
        self._hear = hear
        self._done = float("-inf")

    def __call__(self, report: ProgressReport) -> None:
        """Pass a report on, unless it tells of less than an earlier one."""
        if report.done >= self._done:
            self._done = report.done
            self._hear(report)


async def with_reports(work: Coroutine[object, object, Result]) -> AsyncGenerator[ProgressReport | Result]:
    """Yield what is reported of a call while some work makes it, and what comes of the work last.

    Of reports that nobody has taken yet, the newest is kept. Raises what the work raises.
    """
    heard: list[ProgressReport] = []
    news = asyncio.Event()

    def hear(report: ProgressReport) -> None:
        heard[:] = [report]
        news.set()

    with listen_to_reports(hear):
        task = asyncio.create_task(work)
    task.add_done_callback(lambda _: news.set())
    try:
        while True:
            await news.wait()
            news.clear()
            if heard:
                yield heard.pop()
            if task.done():
                yield task.result()
                return
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
