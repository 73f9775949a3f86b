"""One `tools/call`: made as an agent makes it, told of while it takes long, and cancelled by its client."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import anyio
from mcp.server.streamable_http import REQUEST_CANCELLED
from mcp.shared.exceptions import MCPError
from mcp_types import RequestId

from beckon_agent.exchange import Outcome, failed
from beckon_agent.policy.limits import LimitReached
from beckon_agent.roster import Hosted
from beckon_agent.runs import CallFinished
from beckon_agent.service import NoRoom, Service
from beckon_agent.store.base import StoreUnavailable
from beckon_contract.failures import Reason

Report = Callable[[float, float, str], Awaitable[None]]
"""Tells a client of progress: seconds so far, seconds at most, and a sentence."""


Key = tuple[str | None, RequestId | None]
"""The session and the id of a request; without a session only the end of the connection cancels."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call as a client wants it; `arguments` is JSON, `report` is there where progress is asked for."""

    hosted: Hosted
    name: str
    arguments: str
    report: Report | None


class Calling:
    """Makes calls; `report_every` is in seconds."""

    def __init__(self, service: Service, report_every: float) -> None:
        self._service = service
        self._report_every = report_every
        self._under_way: dict[Key, anyio.CancelScope] = {}

    async def make(self, wanted: Wanted, key: Key) -> CallFinished:
        """Return what a call came to; raises `MCPError` where its client has cancelled it."""
        with anyio.CancelScope() as scope, self._known(key, scope), self._reported(wanted):
            try:
                return await self._service.call(wanted.hosted, wanted.name, wanted.arguments)
            except (NoRoom, StoreUnavailable) as error:
                return _refused(wanted, failed(Reason.UNDELIVERABLE, f"the tool was not called: {error}"))
            except LimitReached as error:
                return _refused(wanted, failed(Reason.DENIED, str(error), retry_after=error.retry_after))
        raise MCPError(REQUEST_CANCELLED, "the call was cancelled; the tool may have had its effect")

    def cancel(self, key: Key) -> None:
        """Cancel a call, if it is under way in this process."""
        scope = self._under_way.get(key)
        if scope is not None:
            scope.cancel()

    @contextlib.contextmanager
    def _known(self, key: Key, scope: anyio.CancelScope) -> Iterator[None]:
        if key[0] is None:  # ids of requests are unique in a session, and nowhere else
            yield
            return
        self._under_way[key] = scope
        try:
            yield
        finally:
            if self._under_way.get(key) is scope:
                del self._under_way[key]

    @contextlib.contextmanager
    def _reported(self, wanted: Wanted) -> Iterator[None]:
        if wanted.report is None:
            yield
            return
        reporting = asyncio.create_task(_tell(wanted, wanted.report, self._report_every))
        try:
            yield
        finally:
            reporting.cancel()


def _refused(wanted: Wanted, outcome: Outcome) -> CallFinished:
    return CallFinished("", wanted.name, outcome.result, outcome.failed, 0)


async def _tell(wanted: Wanted, report: Report, every: float) -> None:
    tool = wanted.hosted.catalogue.current.tools.get(wanted.name)
    most = (tool.timeout if tool else None) or wanted.hosted.agent.limits.call_timeout
    taken = 0.0
    while True:
        await asyncio.sleep(every)
        taken += every
        await report(taken, max(most, taken), f"{wanted.name} has not answered yet, after {taken:g} seconds")
