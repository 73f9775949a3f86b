"""What an MCP server says of its progress on a call, passed on as reports of the call."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from mcp.shared.dispatcher import ProgressFnT

from beckon_tools.adapter.calls import Report


@contextlib.asynccontextmanager
async def passed_on(report: Report) -> AsyncIterator[ProgressFnT]:
    """Yield what hears the server; what it said last has been passed on before the call is answered."""
    newest = _Newest(report)
    try:
        yield newest.hear
        await newest.done()
    finally:
        newest.drop()


class _Newest:
    """Passes on one report at a time; of what is said meanwhile the newest is next.

    The connection that reads progress reads the answers of other calls too: nothing of theirs waits for
    a Broker that is slow to take a report.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._next: tuple[float, float | None, str] | None = None
        self._passing: asyncio.Task[None] | None = None

    async def hear(self, progress: float, total: float | None, message: str | None) -> None:
        """Take what the server says, and return at once."""
        self._next = progress, total, message or ""
        if self._passing is None or self._passing.done():
            self._passing = asyncio.create_task(self._pass_on())

    async def done(self) -> None:
        """Wait until nothing is left to pass on."""
        if self._passing is not None:
            await self._passing

    def drop(self) -> None:
        """Leave out what has not been passed on."""
        if self._passing is not None:
            self._passing.cancel()

    async def _pass_on(self) -> None:
        while self._next is not None:
            (done, total, message), self._next = self._next, None
            await self._report(done, total, message)
