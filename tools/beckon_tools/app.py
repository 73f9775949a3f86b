"""The HTTP application of a tool: a bare ASGI application with routes for calls, health and metrics.

It counts the deliveries of each call: a Broker repeats one that failed or seemed to, and only the tool
sees all of them.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prometheus_client.registry import Collector

from beckon_contract.cloudevents.events import CloudEvent, EventError, RawHeaders, from_http, to_binary
from beckon_contract.failures import Reason
from beckon_runtime.logs import log_context
from beckon_runtime.problem import MEDIA_TYPE, Problem, for_dead_letter
from beckon_tools.calls import IdempotentFault, failure_data, refusal_data, reply_event, run_call
from beckon_tools.declaration import AnyTool, Tool
from beckon_tools.duplicates import Busy, OnceOnly
from beckon_tools.errors import Retry
from beckon_tools.expiry import has_expired
from beckon_tools.outbox import Outbox
from beckon_tools.outcomes.ledger import CallKey, SharedOutcomes, Unavailable, open_ledger
from beckon_tools.settings import Settings
from beckon_tools.telemetry import CONTENT_TYPE, Metrics, trace_processing

logger = logging.getLogger(__name__)

_REMEMBERED_CALLS = 2048  # outcomes that answer duplicate deliveries
_REMEMBERED_BYTES = 33_554_432

Times = Callable[[], Awaitable[int]]
"""Returns how often a call has come by now."""


class Deliveries:
    """Counts deliveries by call, for the newest `capacity` calls.

    With `shared` the replicas count together. The number is for people to look at: if the shared count
    fails, that of this process is reported.
    """

    def __init__(self, capacity: int, shared: SharedOutcomes | None = None) -> None:
        self._capacity = capacity
        self._shared = shared
        self._seen: OrderedDict[CallKey, int] = OrderedDict()  # the last to come at the end

    @asynccontextmanager
    async def count_arrival(self, key: CallKey) -> AsyncIterator[Times]:
        """Count a delivery; yield a function for the number so far.

        The shared count is made while the call runs.
        """
        self._seen[key] = self._seen.pop(key, 0) + 1
        if len(self._seen) > self._capacity:
            self._seen.popitem(last=False)
        counting = asyncio.create_task(self._count_delivery(self._shared, key)) if self._shared else None

        async def times() -> int:
            everywhere = await counting if counting else 1
            return max(everywhere, self._seen.get(key, 1))

        try:
            yield times
        finally:
            if counting:
                await asyncio.wait((counting,))

    async def _count_delivery(self, shared: SharedOutcomes, key: CallKey) -> int:
        try:
            return await shared.count_delivery(key)
        except Unavailable as error:
            logger.warning("a delivery of event %s is not counted with the others: %s", key.id, error)
            return 1


_LONGEST_ID = 128  # characters of what a stranger calls a request
_ABANDONED_SECONDS = 5.0  # given at the end to runs whose caller has hung up

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


class Refused(Exception):
    """A request to be answered with a problem document."""

    def __init__(self, problem: Problem, *headers: tuple[str, str]) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.headers = headers


class CallerGone(Exception):
    """The caller hung up before its request was whole."""


Find = Callable[[str, str], Awaitable[AnyTool | None]]
"""Returns the tool for events of a type from a Broker of a namespace, "" where that is unknown."""


class ToolApp:
    """One tool over HTTP, or all the tools of a `Find` function.

    `POST /` takes the call event. 200: a reply event, also for refused arguments, failures and exceptions of
    the function. 204: an event of another type, which a broad Trigger may send; it is not for this tool, and
    not to be retried. 4xx: no event, or one that is too large or came too slowly; brokers do not retry it.
    503: the function has not run, or raised `Retry`; 500: the function of an idempotent tool raised; brokers
    deliver both again.
    """

    def __init__(
        self, tool: AnyTool | Find, settings: Settings, collectors: Iterable[Collector] = ()
    ) -> None:
        """Serve a tool, or the tools found by a function. `collectors` are metrics beside those of calls."""
        self._find = _find_one_tool(tool) if isinstance(tool, Tool) else tool
        self._settings = settings
        shared = _shared_outcomes(settings)
        self._deliveries = Deliveries(_REMEMBERED_CALLS, shared)
        self._calls = OnceOnly(
            capacity=_REMEMBERED_CALLS,
            budget=_REMEMBERED_BYTES,
            ttl=settings.remember_seconds,
            running=settings.concurrency,
            shared=shared,
        )
        self._outbox = _open_outbox(tool, settings)
        self._metrics = Metrics(running=lambda: self._calls.running_calls, collectors=collectors)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "http":
            try:
                await self._route_request(scope, receive, send)
            except Refused as refused:
                logger.info("answered %d: %s", refused.problem.status, refused)
                await _send_problem(send, refused)
            except CallerGone:
                logger.info("a caller hung up in the middle of its request")
        else:
            raise NotImplementedError(f"no {scope['type']} is served here")

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        sending = self._outbox.start_background() if self._outbox else None
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._calls.drain(_ABANDONED_SECONDS)
        await self._calls.close()
        if sending is not None:
            sending.cancel()
            await asyncio.wait((sending,))
        await send({"type": "lifespan.shutdown.complete"})

    async def _route_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        if path in ("/healthz", "/readyz"):
            _allow_only(method, "GET", "HEAD")
            await _send_response(send, 200, [("content-type", "text/plain")], b"ok\n")
            return
        if path == "/metrics":
            _allow_only(method, "GET", "HEAD")
            await _send_response(send, 200, [("content-type", CONTENT_TYPE)], self._metrics.to_text())
            return
        if path != "/":
            detail = "nothing is served at this path; POST the event of a call to /"
            raise Refused(Problem(404, "not-found", "No such path", detail))
        _allow_only(method, "POST")
        body = await self._read_body(receive)
        call = _read_event(scope["headers"], body)
        with log_context(event_id=call.id, **_request_id(scope["headers"])):
            tool = await self._find(call.type, _namespace_of(scope["headers"]))
            await self._answer_call(call, tool, send)

    async def _answer_call(self, call: CloudEvent, tool: AnyTool | None, send: Send) -> None:
        if tool is None:
            logger.info("event %s of type %s is for no tool here", call.id, call.type)
            await _send_response(send, 204, [], b"")
            return
        key = CallKey(tool.name, call.source, call.id)
        with log_context(tool=tool.name), trace_processing(call), self._metrics.count_call() as counted:
            async with self._deliveries.count_arrival(key) as times:
                try:
                    data = await self._find_outcome(tool, call, key)
                except Refused as refused:
                    counted.set_refused(refused.problem.slug)
                    raise
                counted.set_answered(data)
                reply = reply_event(tool, call, data, self._settings.correlation_names, await times())
        headers, body = to_binary(reply)
        await _send_response(send, 200, headers, body)

    async def _find_outcome(self, tool: AnyTool, call: CloudEvent, key: CallKey) -> bytes:
        """Return the reply data, of a new run or an earlier one.

        An expired call is not run: its reply is a failure. Raises `Refused` for a call without a reply.
        """
        try:
            expired = has_expired(call, datetime.now(UTC))
        except EventError as error:
            return refusal_data(tool, call, error)
        if expired:
            logger.info("event %s had expired, and was not run", call.id)
            return failure_data(Reason.TIMEOUT, "the call had expired when it came; the tool did not run")
        try:
            return await self._calls.find_outcome(
                key,
                lambda: self._metrics.time_run(run_call(tool, call, self._settings)),
            )
        except Busy:
            detail = f"{self._settings.concurrency} calls are running; come again"
            raise Refused(Problem(503, "busy", "Busy", detail), ("retry-after", "1")) from None
        except Unavailable as error:
            logger.error("event %s was not run: %s", call.id, error)  # noqa: TRY400 - the trace adds nothing
            detail = "whether the call has run already cannot be said now; come again"
            raise Refused(Problem(503, "unavailable", "Unavailable", detail), ("retry-after", "1")) from None
        except Retry as error:
            after = [] if error.after is None else [("retry-after", str(error.after))]
            raise Refused(Problem(503, "try-again", "Not now", str(error)), *after) from None
        except IdempotentFault as error:
            raise Refused(Problem(500, "tool-crashed", "The tool failed", str(error))) from None

    async def _read_body(self, receive: Receive) -> bytes:
        try:
            async with asyncio.timeout(self._settings.receive_seconds):
                return await _read_limited(receive, self._settings.max_event_bytes)
        except TimeoutError:
            problem = Problem(408, "slow-body", "Too slow", "the body of the request did not come in time")
            raise Refused(problem, ("connection", "close")) from None


def app(tool: AnyTool, settings: Settings | None = None) -> ToolApp:
    """Return the tool as an ASGI application.

    Without settings it has the defaults, and ignores the environment. Raises `UsageError` for settings
    that cannot be used.
    """
    return ToolApp(tool, settings or Settings.model_construct())


def _open_outbox(tool: AnyTool | Find, settings: Settings) -> Outbox | None:
    """Return the outbox of a tool that answers late, `None` for other tools.

    Raises `UsageError` if its file cannot be written.
    """
    if not (settings.outbox and isinstance(tool, Tool) and tool.signature.ticket_parameter):
        return None
    outbox = Outbox(Path(settings.outbox))
    outbox.check_writable()
    return outbox


def _shared_outcomes(settings: Settings) -> SharedOutcomes | None:
    url = settings.remember_url.get_secret_value()
    if not url:
        return None
    lease, ttl = settings.remember_lease, settings.remember_seconds
    return SharedOutcomes(open_ledger(url), lease=lease, ttl=ttl)


def _find_one_tool(tool: AnyTool) -> Find:
    async def find_tool(type_: str, _: str) -> AnyTool | None:
        return tool if type_ == tool.type else None

    return find_tool


def _namespace_of(headers: RawHeaders) -> str:
    """Return the namespace of the Trigger, "" if unknown.

    The Broker sends it in the header `Kn-Namespace`.
    """
    return next((value.decode("latin-1") for name, value in headers if name == b"kn-namespace"), "")


def _request_id(headers: RawHeaders) -> dict[str, str]:
    """Return the request id of the call as a log field, if any.

    Broker or agent pass it on in the header `X-Request-Id`.
    """
    request_id = next((value for name, value in headers if name == b"x-request-id"), b"")
    return {"request_id": request_id[:_LONGEST_ID].decode("latin-1")} if request_id else {}


async def _read_limited(receive: Receive, limit: int) -> bytes:
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


def _allow_only(method: str, *allowed: str) -> None:
    if method not in allowed:
        problem = Problem(405, "method-not-allowed", "Method not allowed", f"use {allowed[0]} here")
        raise Refused(problem, ("allow", ", ".join(allowed)))


async def _send_problem(send: Send, refused: Refused) -> None:
    headers = [("content-type", MEDIA_TYPE), *refused.headers]
    await _send_response(send, refused.problem.status, headers, for_dead_letter(refused.problem).body())


async def _send_response(send: Send, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
    if status != 204:
        headers = [*headers, ("content-length", str(len(body)))]
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
