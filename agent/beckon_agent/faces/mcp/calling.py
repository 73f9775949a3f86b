"""One `tools/call`: made as an agent makes it, told of while it takes long, and cancelled by its client."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import anyio
from mcp.server.streamable_http import REQUEST_CANCELLED
from mcp.shared.exceptions import MCPError

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.auth.quotas import LimitReached
from beckon_agent.core.run_types import CallFinished
from beckon_agent.faces.mcp.cancelling import Cancellations, Key
from beckon_agent.faces.mcp.progress import Progress, Tell
from beckon_agent.service import NoRoom, Service
from beckon_agent.store.base import StoreUnavailable
from beckon_agent.tool_calls.outcome import CallOutcome, failed_outcome
from beckon_contract.failures import Reason


@dataclass(frozen=True, slots=True)
class Wanted:
    """A call as a client wants it; `arguments` is JSON, `tell` is there where progress is asked for."""

    hosted: AgentHandle
    name: str
    arguments: str
    tell: Tell | None


class Calling:
    """Makes calls; `report_every` is in seconds."""

    def __init__(self, service: Service, report_every: float, cancellations: Cancellations) -> None:
        self._service = service
        self._cancellations = cancellations
        self._report_every = report_every
        self._under_way: dict[Key, anyio.CancelScope] = {}

    async def make(self, wanted: Wanted, key: Key) -> CallFinished:
        """Return what a call came to; raises `MCPError` where its client has cancelled it."""
        with anyio.CancelScope() as scope, self._known(key, scope):
            try:
                async with self._reported(wanted):
                    return await self._service.call(wanted.hosted, wanted.name, wanted.arguments)
            except (NoRoom, StoreUnavailable) as error:
                return _refused(
                    wanted, failed_outcome(Reason.UNDELIVERABLE, f"the tool was not called: {error}")
                )
            except LimitReached as error:
                return _refused(
                    wanted, failed_outcome(Reason.DENIED, str(error), retry_after=error.retry_after)
                )
        raise MCPError(REQUEST_CANCELLED, "the call was cancelled; the tool may have had its effect")

    async def cancel(self, key: Key) -> None:
        """Cancel a call, here or at the replica where it is under way."""
        scope = self._under_way.get(key)
        if scope is not None:
            scope.cancel()
        else:
            await self._cancellations.tell(key)

    @contextlib.contextmanager
    def _known(self, key: Key, scope: anyio.CancelScope) -> Iterator[None]:
        if key[0] is None:  # ids of requests are unique in a session, and nowhere else
            yield
            return
        self._under_way[key] = scope
        listening = asyncio.create_task(self._cancellations.listen(key, scope.cancel))
        try:
            yield
        finally:
            listening.cancel()
            if self._under_way.get(key) is scope:
                del self._under_way[key]

    def _reported(self, wanted: Wanted) -> contextlib.AbstractAsyncContextManager[None]:
        if wanted.tell is None:
            return contextlib.nullcontext()
        return Progress(wanted.name, wanted.tell, self._report_every).told()


def _refused(wanted: Wanted, outcome: CallOutcome) -> CallFinished:
    return CallFinished("", wanted.name, outcome.result, outcome.failed, 0)
