"""The HTTP face of a tool: a bare ASGI application, one route for calls and two for health."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from datetime import UTC, datetime
from typing import Any

from beckon_contract.events import CloudEvent, EventError, RawHeaders, from_http, to_binary
from beckon_contract.failures import Reason
from beckon_contract.problem import MEDIA_TYPE, Problem, for_dead_letter
from beckon_tools.calls import run_call
from beckon_tools.declaration import AnyTool
from beckon_tools.duplicates import Busy, OnceOnly
from beckon_tools.expiry import has_expired
from beckon_tools.replies import failure_data, reply_event
from beckon_tools.settings import Settings
from beckon_tools.signature import InvalidArguments
from beckon_tools.spans import processing

logger = logging.getLogger(__name__)

_ABANDONED_SECONDS = 5.0  # given at the end to runs whose caller has hung up

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Refused(Exception):
    """A request that is answered with a problem."""

    def __init__(self, problem: Problem, *headers: tuple[str, str]) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.headers = headers


class CallerGone(Exception):
    """The caller hung up before its request was whole."""


class ToolApp:
    """One tool over HTTP.

    `POST /` takes the call event. 200: a reply event, a tool's own failure included. 204: an
    event of another type, which a broad Trigger may send: not ours, and not to be retried.
    4xx: bad, and brokers do not retry it; 500 and 503: brokers do.
    """

    def __init__(self, tool: AnyTool, settings: Settings) -> None:
        self._tool = tool
        self._settings = settings
        self._calls = OnceOnly(
            capacity=settings.remember_calls,
            budget=settings.remember_bytes,
            ttl=settings.remember_seconds,
            running=settings.concurrency,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            try:
                await self._route(scope, receive, send)
            except Refused as refused:
                logger.info("answered %d: %s", refused.problem.status, refused)
                await _send_problem(send, refused)
            except CallerGone:
                logger.info("a caller hung up in the middle of its request")
        else:
            raise NotImplementedError(f"no {scope['type']} is served here")

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._calls.drain(_ABANDONED_SECONDS)
        await send({"type": "lifespan.shutdown.complete"})

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        if path in ("/healthz", "/readyz"):
            _only(method, "GET", "HEAD")
            await _send(send, 200, [("content-type", "text/plain")], b"ok\n")
            return
        if path != "/":
            detail = f"nothing is served at this path; POST the call event of {self._tool.type} to /"
            raise Refused(Problem(404, "not-found", "No such path", detail))
        _only(method, "POST")
        body = await self._body(receive)
        await self._answer(_read_event(scope["headers"], body), send)

    async def _answer(self, call: CloudEvent, send: Send) -> None:
        if call.type != self._tool.type:
            logger.info("event %s of type %s is not for this tool", call.id, call.type)
            await _send(send, 204, [], b"")
            return
        with processing(call):
            data = await self._outcome(call)
            headers, body = to_binary(reply_event(self._tool, call, data, self._settings.correlation))
        await _send(send, 200, headers, body)

    async def _outcome(self, call: CloudEvent) -> bytes:
        """Return the data of the reply, of a new run or of the one that this call repeats."""
        if _expired(call):
            logger.info("event %s had expired, and was not run", call.id)
            return failure_data(Reason.TIMEOUT, "the call had expired when it came; the tool did not run")
        try:
            return await self._calls.outcome(
                (call.source, call.id), lambda: run_call(self._tool, call, self._settings)
            )
        except InvalidArguments as error:
            raise Refused(Problem(400, "invalid-arguments", "Invalid arguments", str(error))) from None
        except EventError as error:
            raise Refused(Problem(400, "invalid-event", "Invalid event", str(error))) from None
        except Busy:
            detail = f"{self._settings.concurrency} calls are running; come again"
            raise Refused(Problem(503, "busy", "Busy", detail), ("retry-after", "1")) from None
        except Exception:
            logger.exception("the tool %s failed on event %s", self._tool.name, call.id)
            detail = "the tool failed unexpectedly; its log says why, under the id of the event"
            raise Refused(Problem(500, "tool-crashed", "The tool failed", detail)) from None

    async def _body(self, receive: Receive) -> bytes:
        try:
            async with asyncio.timeout(self._settings.body_timeout):
                return await _read(receive, self._settings.body_limit)
        except TimeoutError:
            problem = Problem(408, "slow-body", "Too slow", "the body of the request did not come in time")
            raise Refused(problem, ("connection", "close")) from None


def app(tool: AnyTool, settings: Settings | None = None) -> ToolApp:
    """Return the tool as an ASGI application; without settings, the defaults, whatever the environment."""
    return ToolApp(tool, settings or Settings.model_construct())


async def _read(receive: Receive, limit: int) -> bytes:
    body = b""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise CallerGone
        body += message.get("body", b"")
        if len(body) > limit:
            problem = Problem(413, "too-large", "Too large", f"the event is larger than {limit} bytes")
            raise Refused(problem, ("connection", "close"))
        more = message.get("more_body", False)
    return body


def _read_event(headers: RawHeaders, body: bytes) -> CloudEvent:
    try:
        return from_http(headers, body)
    except EventError as error:
        raise Refused(Problem(400, "invalid-event", "Not a CloudEvent", str(error))) from None


def _expired(call: CloudEvent) -> bool:
    try:
        return has_expired(call, datetime.now(UTC))
    except EventError as error:
        raise Refused(Problem(400, "invalid-event", "Invalid event", str(error))) from None


def _only(method: str, *allowed: str) -> None:
    if method not in allowed:
        problem = Problem(405, "method-not-allowed", "Method not allowed", f"use {allowed[0]} here")
        raise Refused(problem, ("allow", ", ".join(allowed)))


async def _send_problem(send: Send, refused: Refused) -> None:
    headers = [("content-type", MEDIA_TYPE), *refused.headers]
    await _send(send, refused.problem.status, headers, for_dead_letter(refused.problem).body())


async def _send(send: Send, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
    if status != 204:
        headers = [*headers, ("content-length", str(len(body)))]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
