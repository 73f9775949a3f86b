"""One `tools/call`: made as an agent makes it, with progress, cancellation, and its result.

A result has content for a model to read, and structured content for programs.
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeGuard

import anyio
from mcp.server.streamable_http import REQUEST_CANCELLED
from mcp.shared.exceptions import MCPError

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.mcp.cancellation import Cancellations, Key
from beckon_agent.api.mcp.progress import ProgressSender, SendProgress
from beckon_agent.auth.quotas import LimitReached
from beckon_agent.core.run_events import CallFinished
from beckon_agent.service import NoRoom, Service
from beckon_agent.store.base import StoreUnavailable
from beckon_agent.tool_calls.outcome import CallOutcome, failed_outcome
from beckon_contract.failures import Reason
from beckon_contract.jsontext import dumps

_MEDIA = frozenset({"media_type", "data_base64"})


def to_call_result(call: CallFinished, *, any_json: bool) -> dict[str, object]:
    """Return the members of a `tools/call` result.

    Media, alone or in a list, become content of their own. Other JSON is sent twice, as text and as
    structured content; revisions before 2026-07-28 allow only objects there, later ones `any_json`.
    """
    result = call.result
    parts = result if isinstance(result, list) else [result]
    if any(_is_media(part) for part in parts):
        content = [
            _media_content(part, call.name) if _is_media(part) else _text_content(part) for part in parts
        ]
        return {"content": content, "resultType": "complete"}
    members: dict[str, object] = {"content": [_text_content(result)], "resultType": "complete"}
    if call.failed:
        members["isError"] = True
    if isinstance(result, Mapping) or (any_json and not isinstance(result, str | None)):
        members["structuredContent"] = result
    return members


def _text_content(result: object) -> dict[str, object]:
    return {"type": "text", "text": result if isinstance(result, str) else dumps(result).decode()}


def _is_media(part: object) -> TypeGuard[Mapping[str, str]]:
    return (
        isinstance(part, Mapping) and part.keys() == _MEDIA and all(isinstance(v, str) for v in part.values())
    )


def _media_content(part: Mapping[str, str], name: str) -> dict[str, object]:
    """Return a picture or a sound as content of its type.

    Any other bytes become an embedded resource.
    """
    media_type, data = part["media_type"], part["data_base64"]
    kind = media_type.partition("/")[0].lower()
    if kind in ("image", "audio"):
        return {"type": kind, "data": data, "mimeType": media_type}
    resource = {"uri": f"beckon://results/{name}", "mimeType": media_type, "blob": data}
    return {"type": "resource", "resource": resource}


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A call requested by a client.

    `arguments` is JSON. `send_progress` is set if the client requests progress.
    """

    hosted: AgentHandle
    name: str
    arguments: str
    send_progress: SendProgress | None


class McpCalls:
    """Makes calls; `report_every` is in seconds."""

    def __init__(self, service: Service, report_every: float, cancellations: Cancellations) -> None:
        self._service = service
        self._cancellations = cancellations
        self._report_every = report_every
        self._running: dict[Key, anyio.CancelScope] = {}

    async def make_call(self, wanted: RequestedCall, key: Key) -> CallFinished:
        """Make a call and return its outcome.

        Raises `MCPError` if its client has cancelled it.
        """
        with anyio.CancelScope() as scope, self._register_call(key, scope):
            try:
                async with self._report_progress(wanted):
                    return await self._service.call_tool(wanted.hosted, wanted.name, wanted.arguments)
            except (NoRoom, StoreUnavailable) as error:
                return _to_refusal(
                    wanted, failed_outcome(Reason.UNDELIVERABLE, f"the tool was not called: {error}")
                )
            except LimitReached as error:
                return _to_refusal(
                    wanted, failed_outcome(Reason.DENIED, str(error), retry_after=error.retry_after)
                )
        raise MCPError(REQUEST_CANCELLED, "the call was cancelled; the tool may have had its effect")

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


def _to_refusal(wanted: RequestedCall, outcome: CallOutcome) -> CallFinished:
    return CallFinished("", wanted.name, outcome.result, outcome.failed, 0)
