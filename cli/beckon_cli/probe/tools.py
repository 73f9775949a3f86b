"""The probe's tools: one for each behaviour of a service.

A behaviour gets the call and makes the HTTP answer. Each sound reply returns the data of its call, by which
the caller knows it for the right one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from aiohttp import web

from beckon_contract.cloudevents.events import AttributeValue, CloudEvent, to_binary
from beckon_contract.cloudevents.extensions import CAUSE

Behaviour = Callable[[web.Request, CloudEvent], Awaitable[web.StreamResponse]]

REASON = "the probe's own reason"
"""The text in the answers 400 and 500, looked for in dead letters and errors."""

HELD = "restart-held"
"""The tool that has calls at work when a Broker is killed; it is no case of its own."""

REPLY_SUFFIX = ".reply"
"""The end of the types of replies."""

_SOURCE = "/beckon/probe"


class Tools:
    """The tools of one probe.

    `slow` are the seconds of work of the slow tool. The tool of `parallel` answers once so many calls are
    there, and that of `acknowledgement` once `acknowledged` is set; both wait for `patience` seconds at most.
    After that, `parallel` answers every further call at once: it has seen how many come. The tool of `HELD`
    answers once `released` is set.
    """

    def __init__(self, slow: float, calls: int, patience: float) -> None:
        self.acknowledged = asyncio.Event()
        self.released = asyncio.Event()
        self.gave_up_acknowledgement = False
        self._slow = slow
        self._awaited = calls
        self._patience = patience
        self._parallel_over = asyncio.Event()

    def behaviours(self) -> dict[str, Behaviour]:
        """Return the tools by case."""
        return {
            "acknowledgement": self._reply_acknowledged,
            "echo": partial(_reply_later, 0),
            "parallel": self._reply_side_by_side,
            "slow": partial(_reply_later, self._slow),
            "restart": partial(_reply_later, 0),
            HELD: self._reply_released,
            "refusal": partial(_answer_error, 400),
            "failure": partial(_answer_error, 500),
            "plain-json": _answer_json,
            "broken-connection": _break_connection,
            "reply-correlationid": partial(_reply_as, _copied_correlation),
            "reply-all-extensions": partial(_reply_as, _copied_extensions),
            "reply-responseid": partial(_reply_as, _response_id),
            "reply-nothing": partial(_reply_as, _no_extension),
            "reply-json": _answer_json,
            "reply-204": partial(_answer_empty, 204),
            "reply-202": partial(_answer_empty, 202),
        }

    async def _reply_acknowledged(self, _: web.Request, call: CloudEvent) -> web.Response:
        if not await self._wait(self.acknowledged):
            self.gave_up_acknowledgement = True
        return _reply_with_token(call)

    async def _reply_released(self, _: web.Request, call: CloudEvent) -> web.Response:
        await self.released.wait()
        return _reply_with_token(call)

    async def _reply_side_by_side(self, _: web.Request, call: CloudEvent) -> web.Response:
        self._awaited -= 1
        if self._awaited <= 0 or not await self._wait(self._parallel_over):
            self._parallel_over.set()
        return _reply_with_token(call)

    async def _wait(self, event: asyncio.Event) -> bool:
        """Wait for an event; return False after the patience."""
        try:
            await asyncio.wait_for(event.wait(), self._patience)
        except TimeoutError:
            return False
        return True


def token_of(call: CloudEvent) -> str:
    """Return the correlation token of a call, "" without one."""
    return str(call.extensions.get("correlationid", ""))


async def _reply_later(seconds: float, _: web.Request, call: CloudEvent) -> web.Response:
    if seconds:
        await asyncio.sleep(seconds)
    return _reply_with_token(call)


def _reply_with_token(call: CloudEvent) -> web.Response:
    return _reply(call, {"replyid": token_of(call), CAUSE: call.id})


async def _reply_as(
    extensions: Callable[[CloudEvent], Mapping[str, AttributeValue]], _: web.Request, call: CloudEvent
) -> web.Response:
    return _reply(call, extensions(call))


def _reply(call: CloudEvent, extensions: Mapping[str, AttributeValue]) -> web.Response:
    kind = f"{call.type}{REPLY_SUFFIX}"  # its own type, or the reply would be a call again
    event = CloudEvent(
        f"{call.id}-reply", _SOURCE, kind, call.data, call.datacontenttype, extensions=dict(extensions)
    )
    headers, body = to_binary(event)
    return web.Response(headers=dict(headers), body=body)


def _copied_correlation(call: CloudEvent) -> Mapping[str, AttributeValue]:
    return {"correlationid": token_of(call)}


def _copied_extensions(call: CloudEvent) -> Mapping[str, AttributeValue]:
    return call.extensions


def _response_id(call: CloudEvent) -> Mapping[str, AttributeValue]:
    return {"responseid": token_of(call)}


def _no_extension(_: CloudEvent) -> Mapping[str, AttributeValue]:
    return {}


async def _answer_error(status: int, _: web.Request, __: CloudEvent) -> web.Response:
    return web.Response(status=status, text=REASON)


async def _answer_json(_: web.Request, call: CloudEvent) -> web.Response:
    return web.json_response({"id": call.id})


async def _answer_empty(status: int, _: web.Request, __: CloudEvent) -> web.Response:
    return web.Response(status=status)


async def _break_connection(request: web.Request, _: CloudEvent) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
