"""Progress of a call to its client before the result.

The client gets the tool's reports, and a sign of life while there are none.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from beckon_agent.core.context import request_id
from beckon_agent.tool_calls.progress import ProgressReport, listen_to_reports

logger = logging.getLogger(__name__)

SendProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Tells a client of progress: how much is done, of how much if that is known, and a sentence."""

_LEAST = 1e-6


class ProgressSender:
    """Sends the progress of one call to its client.

    The values grow each time, as MCP requires (basic/patterns/progress). They are the tool's own. For a
    report that does not grow, and for a sign of life, the value is the last one and a millionth more.
    """

    def __init__(self, name: str, send: SendProgress, every: float) -> None:
        """Send a sign of life after `every` seconds without a report."""
        self._name = name
        self._send = send
        self._every = every
        self._last = 0.0
        self._total: float | None = None
        self._newest: ProgressReport | None = None
        self._news = asyncio.Event()
        self._over = False

    @contextlib.asynccontextmanager
    async def send_progress(self) -> AsyncIterator[None]:
        """Send the progress of the call made in this block.

        If the block ends without an error, it waits until the last report is sent.
        """
        sending = asyncio.create_task(self._send_reports())
        try:
            with listen_to_reports(self._take_report):
                yield
            self._over = True
            self._news.set()
            for failure in await asyncio.gather(sending, return_exceptions=True):
                if failure is not None:  # the result matters more
                    logger.warning(
                        "request %s: progress of %s was not told: %r", request_id(), self._name, failure
                    )
        finally:
            sending.cancel()

    def _take_report(self, report: ProgressReport) -> None:
        self._newest = report
        self._news.set()

    async def _send_reports(self) -> None:
        begun = asyncio.get_running_loop().time()
        while not (self._over and self._newest is None):
            try:
                async with asyncio.timeout(self._every):
                    await self._news.wait()
            except TimeoutError:
                taken = asyncio.get_running_loop().time() - begun
                await self._sign_of_life(f"{self._name} has not answered yet, after {taken:.0f} seconds")
                continue
            self._news.clear()
            report, self._newest = self._newest, None
            if report is not None:
                await self._send_report(report)

    async def _send_report(self, report: ProgressReport) -> None:
        self._total = report.total
        self._last = report.done if report.done > self._last else self._a_little_more()
        await self._send(self._last, self._total, report.message or None)

    async def _sign_of_life(self, message: str) -> None:
        self._last = self._a_little_more()
        total = self._total if self._total is not None and self._total > self._last else None
        await self._send(self._last, total, message)

    def _a_little_more(self) -> float:
        return self._last + max(_LEAST, abs(self._last) * _LEAST)
