"""Concurrent tool calls, with reports and results in the order of their arrival."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial

from beckon_agent.core.run_types import CallFinished, CallProgressed
from beckon_agent.tool_calls.checkpoint import ToolCallState
from beckon_agent.tool_calls.progress import ProgressReport, listen_to_reports

Make = Callable[[ToolCallState], Awaitable[CallFinished | None]]


async def make_calls(
    calls: Sequence[ToolCallState], make: Make
) -> AsyncGenerator[CallFinished | CallProgressed]:
    """Make calls; yield their reports and answers in order of arrival.

    A call without an answer yet yields none. Raises the errors of making a call. Calls still in progress
    when the generator is closed are cancelled.
    """
    happened = _CallEvents()
    tasks = [happened.start_call(call, make) for call in calls]
    left = len(tasks)
    try:
        while left:
            news = await happened.wait_for_next()
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


class _CallEvents:
    """The unread events of calls.

    They are the ends of calls, and the newest report of each.
    """

    def __init__(self) -> None:
        self._queue: asyncio.Queue[str | asyncio.Task[CallFinished | None]] = asyncio.Queue()
        self._reports: dict[str, CallProgressed] = {}

    def start_call(self, call: ToolCallState, make: Make) -> asyncio.Task[CallFinished | None]:
        """Make a call in a task of its own."""
        with listen_to_reports(partial(self._queue_report, call)):
            task = asyncio.create_task(_wait_for(call, make))
        task.add_done_callback(self._queue.put_nowait)
        return task

    async def wait_for_next(self) -> CallProgressed | asyncio.Task[CallFinished | None]:
        """Wait for a report or the end of a call."""
        news = await self._queue.get()
        return self._reports.pop(news) if isinstance(news, str) else news

    def _queue_report(self, call: ToolCallState, report: ProgressReport) -> None:
        if call.event_id not in self._reports:
            self._queue.put_nowait(call.event_id)
        tool_call = call.prepared.tool_call
        self._reports[call.event_id] = CallProgressed(
            tool_call.id, tool_call.name, report.done, report.total, report.message
        )


async def _wait_for(call: ToolCallState, make: Make) -> CallFinished | None:
    return await make(call)
