"""Calls that are made side by side: what becomes of them, as it happens."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial

from beckon_agent.calling.reports import Report, hearing
from beckon_agent.journal import CallOfTurn
from beckon_agent.runs import CallFinished, CallProgressed

Make = Callable[[CallOfTurn], Awaitable[CallFinished | None]]


async def side_by_side(
    calls: Sequence[CallOfTurn], make: Make
) -> AsyncGenerator[CallFinished | CallProgressed]:
    """Make calls; yield what their tools report, and each answer that there is, in the order they come.

    Raises what making one raises. Calls that are under way when it is closed are cancelled.
    """
    happened = _Happened()
    tasks = [happened.begin(call, make) for call in calls]
    left = len(tasks)
    try:
        while left:
            news = await happened.next()
            if isinstance(news, CallProgressed):
                yield news
                continue
            left -= 1
            finished = news.result()
            if finished is not None:
                yield finished
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Happened:
    """What nobody has heard yet: ends of calls, and of reports the newest of each call."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[str | asyncio.Task[CallFinished | None]] = asyncio.Queue()
        self._reports: dict[str, CallProgressed] = {}

    def begin(self, call: CallOfTurn, make: Make) -> asyncio.Task[CallFinished | None]:
        """Make a call in a task of its own."""
        with hearing(partial(self._report, call)):
            task = asyncio.create_task(_made(call, make))
        task.add_done_callback(self._queue.put_nowait)
        return task

    async def next(self) -> CallProgressed | asyncio.Task[CallFinished | None]:
        """Wait for a report, or for a call that has ended."""
        news = await self._queue.get()
        return self._reports.pop(news) if isinstance(news, str) else news

    def _report(self, call: CallOfTurn, report: Report) -> None:
        if call.event_id not in self._reports:
            self._queue.put_nowait(call.event_id)
        asked = call.prepared.asked
        self._reports[call.event_id] = CallProgressed(
            asked.id, asked.name, report.done, report.total, report.message
        )


async def _made(call: CallOfTurn, make: Make) -> CallFinished | None:
    return await make(call)
