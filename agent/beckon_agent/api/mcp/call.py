"""One `tools/call`: made as an agent makes it, with progress and cancellation.

Before the result, the client gets the tool's reports, and a sign of life while there are none.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass

import anyio
from mcp.server.streamable_http import REQUEST_CANCELLED
from mcp.shared.exceptions import MCPError

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.mcp.notifications import Cancellations, Key
from beckon_agent.auth.quotas import LimitReached
from beckon_agent.core.context import request_id
from beckon_agent.core.model_types import ToolCall
from beckon_agent.core.run_events import CallFinished
from beckon_agent.service import NoRoom, Service
from beckon_agent.store.base import StoreUnavailable
from beckon_agent.tool_calls.outcome import CallOutcome, failed_outcome
from beckon_agent.tool_calls.progress import ProgressReport, listen_to_reports
from beckon_agent.tool_calls.validation import PreparedCall, prepare_calls
from beckon_contract.cloudevents.extensions import FIRST_REPORTS
from beckon_contract.failures import Reason

logger = logging.getLogger(__name__)

SendProgress = Callable[[float, float | None, str | None], Awaitable[None]]
"""Reports progress to a client: how much is done, of how much if that is known, and a sentence."""

_LEAST = 1e-6


class ProgressSender:
    """Sends the progress of one call to its client.

    The values grow each time, as MCP requires (basic/patterns/progress). They are the tool's own. For a
    report that does not grow, and for a sign of life, the value is the last one and a millionth more. The
    first three reports are all sent; of later ones, the newest.
    """

    def __init__(self, name: str, send: SendProgress, every: float) -> None:
        """Send a sign of life after `every` seconds without a report."""
        self._name = name
        self._send = send
        self._every = every
        self._last: float | None = None
        self._total: float | None = None
        self._taken = 0
        self._waiting = deque[ProgressReport]()
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
                        "request %s: progress of %s was not sent: %r", request_id(), self._name, failure
                    )
        finally:
            sending.cancel()

    def _take_report(self, report: ProgressReport) -> None:
        self._taken += 1
        if self._waiting and self._taken > FIRST_REPORTS + 1:
            self._waiting.pop()  # it is none of the first, and newer ones replace it
        self._waiting.append(report)
        self._news.set()

    async def _send_reports(self) -> None:
        started = asyncio.get_running_loop().time()
        while not (self._over and not self._waiting):
            try:
                async with asyncio.timeout(self._every):
                    await self._news.wait()
            except TimeoutError:
                elapsed = asyncio.get_running_loop().time() - started
                await self._send_heartbeat(f"{self._name} has not answered yet, after {elapsed:.0f} seconds")
                continue
            self._news.clear()
            while self._waiting:
                await self._send_report(self._waiting.popleft())

    async def _send_report(self, report: ProgressReport) -> None:
        self._total = report.total
        grows = self._last is None or report.done > self._last
        self._last = report.done if grows else self._next_progress()
        await self._send(self._last, self._total, report.message or None)

    async def _send_heartbeat(self, message: str) -> None:
        self._last = self._next_progress()
        total = self._total if self._total is not None and self._total > self._last else None
        await self._send(self._last, total, message)

    def _next_progress(self) -> float:
        last = self._last or 0.0
        return last + max(_LEAST, abs(last) * _LEAST)


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A call requested by a client.

    `arguments` is JSON. `send_progress` is set if the client requests progress. `approved` is True if a
    person has allowed the call.
    """

    hosted: AgentHandle
    name: str
    arguments: str
    send_progress: SendProgress | None
    approved: bool = False

    def prepare(self) -> PreparedCall:
        """Return the call after inspection."""
        requested = ToolCall("requested", self.name, self.arguments)
        return prepare_calls([requested], self.hosted.catalogue.current.tools)[0]


MadeCall = CallFinished | dict[str, object]
"""The end of a call, or the result by which it requests input."""

MakeCall = Callable[[RequestedCall], Awaitable[MadeCall]]

REFUSALS = (NoRoom, StoreUnavailable, LimitReached)
"""The errors of a call that is not made."""


class McpCalls:
    """Makes calls; `report_every` is in seconds."""

    def __init__(self, service: Service, report_every: float, cancellations: Cancellations) -> None:
        self._service = service
        self._cancellations = cancellations
        self._report_every = report_every
        self._running: dict[Key, anyio.CancelScope] = {}

    async def make_call(self, wanted: RequestedCall, key: Key, make: MakeCall | None = None) -> MadeCall:
        """Make a call and return its outcome. Raises `MCPError` if its client has cancelled it.

        Raises `InputNeeded` if it is made at once, and its tool requests input.
        `make` replaces the default, an immediate call without a stored run.
        """
        make = make or self._call_directly
        with anyio.CancelScope() as scope, self._register_call(key, scope):
            try:
                async with self._report_progress(wanted):
                    return await make(wanted)
            except REFUSALS as error:
                return to_refusal(wanted, error)
        raise MCPError(REQUEST_CANCELLED, "the call was cancelled; the tool may have had its effect")

    async def _call_directly(self, wanted: RequestedCall) -> CallFinished:
        return await self._service.call_tool(
            wanted.hosted, wanted.name, wanted.arguments, approved=wanted.approved
        )

    async def cancel_call(self, key: Key) -> None:
        """Cancel a call in progress, here or at another replica."""
        scope = self._running.get(key)
        if scope is not None:
            scope.cancel()
        else:
            await self._cancellations.announce_call(key)

    @contextlib.contextmanager
    def _register_call(self, key: Key, scope: anyio.CancelScope) -> Iterator[None]:
        if key[0] is None:  # ids of requests are unique in a session, and nowhere else
            yield
            return
        self._running[key] = scope
        listening = asyncio.create_task(self._cancellations.listen_for(key, scope.cancel))
        try:
            yield
        finally:
            listening.cancel()
            if self._running.get(key) is scope:
                del self._running[key]

    def _report_progress(self, wanted: RequestedCall) -> contextlib.AbstractAsyncContextManager[None]:
        if wanted.send_progress is None:
            return contextlib.nullcontext()
        return ProgressSender(wanted.name, wanted.send_progress, self._report_every).send_progress()


def to_refusal(wanted: RequestedCall, error: NoRoom | StoreUnavailable | LimitReached) -> CallFinished:
    """Return the outcome of a call that was not made."""
    outcome = (
        failed_outcome(Reason.DENIED, str(error), retry_after=error.retry_after)
        if isinstance(error, LimitReached)
        else failed_outcome(Reason.UNDELIVERABLE, f"the tool was not called: {error}")
    )
    return refuse_call(wanted, outcome)


def refuse_call(wanted: RequestedCall, outcome: CallOutcome) -> CallFinished:
    """Return the end of a call that was not made."""
    return CallFinished("", wanted.name, outcome.result, outcome.failed, 0)
