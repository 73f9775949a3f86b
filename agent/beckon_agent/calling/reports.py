"""What a tool reports of a call while it works on it, for whoever listens in this process."""

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
class Report:
    """How far a call has come: so much of `total`, in whatever unit, or of nobody knows how much."""

    done: float
    total: float | None = None
    message: str = ""


Result = TypeVar("Result")

Hear = Callable[[Report], None]

_current: ContextVar[Hear | None] = ContextVar("reports", default=None)


@contextmanager
def hearing(hear: Hear) -> Iterator[None]:
    """Hear the reports of the call that this task makes."""
    token = _current.set(hear)
    try:
        yield
    finally:
        _current.reset(token)


def listener() -> Hear | None:
    """Return who hears the reports of the call that this task makes."""
    return _current.get()


def read(event: CloudEvent) -> Report | None:
    """Return what a report says; `None` for what is none, since nothing depends on it."""
    try:
        told = event.json()
    except EventError:
        return None
    if not isinstance(told, Mapping) or (done := _number(told.get("progress"))) is None:
        return None
    message = told.get("message")
    return Report(done, _number(told.get("total")), message[:_LONGEST] if isinstance(message, str) else "")


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        return None
    return value


class Latest:
    """Lets through what goes on from the report before: Brokers may deliver two in the wrong order."""

    def __init__(self, hear: Hear) -> None:
        self._hear = hear
        self._done = float("-inf")

    def __call__(self, report: Report) -> None:
        """Pass a report on, unless it tells of less than an earlier one."""
        if report.done >= self._done:
            self._done = report.done
            self._hear(report)


async def with_reports(work: Coroutine[object, object, Result]) -> AsyncGenerator[Report | Result]:
    """Yield what is reported of a call while some work makes it, and what comes of the work last.

    Of reports that nobody has taken yet, the newest is kept. Raises what the work raises.
    """
    heard: list[Report] = []
    news = asyncio.Event()

    def hear(report: Report) -> None:
        heard[:] = [report]
        news.set()

    with hearing(hear):
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
