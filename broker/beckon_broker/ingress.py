"""The HTTP ingress: `POST /NAMESPACE/BROKER`, as in Knative's brokers.

The answers are those of the multi-tenant broker's ingress (knative/eventing
pkg/broker/ingress/ingress_handler.go), with a problem document where that sends no body, and
with 413, 415 and 503 for what an unbounded memory would otherwise have to hold.
"""

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from beckon_broker.dispatcher import Dispatcher
from beckon_broker.envelope import BrokerName, Refused, passed_headers, seal
from beckon_broker.metrics import Metrics
from beckon_contract.cloudevents.events import EventError, from_http
from beckon_runtime.problem import MEDIA_TYPE, Problem

_BODY_SECONDS = 30.0
_ALLOW = {"allow": "POST, OPTIONS"}
_WEBHOOK = {"webhook-allowed-origin": "*", "webhook-allowed-rate": "*"}  # HTTP 1.1 Web Hooks, section 4


class Ingress:
    """An ASGI application: 202 once an event is queued for all matching Triggers.

    `catch_up` reads the manifests. It is called for an event without a known Broker or a matching Trigger:
    the sender may have read a newer Trigger than this broker has, like an agent that offers a tool and gets
    a call for it at once.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        catch_up: Callable[[], Awaitable[None]],
        metrics: Metrics,
        max_event_bytes: int,
    ) -> None:
        self._dispatcher = dispatcher
        self._catch_up = catch_up
        self._metrics = metrics
        self._max_event_bytes = max_event_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except Refused as refused:
            self._metrics.refused(refused.problem.slug)
            response = problem_response(refused.problem, refused.retry_after)
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        if request.method == "OPTIONS":
            return Response(headers={**_ALLOW, **_WEBHOOK})
        if request.method != "POST":
            raise _refused(405, "method-not-allowed", "Events are sent with POST", "send POST or OPTIONS")
        broker = _broker(request)
        if not self._dispatcher.knows(broker):
            await self._catch_up()
        self._dispatcher.check(broker)
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise _refused(
                415, "compressed", "Compressed events are not taken", "send the event uncompressed"
            )
        body = await self._body(request)
        try:
            event = from_http(request.headers.raw, body, relayed=True)
        except EventError as error:
            raise _refused(400, "not-an-event", "The request is not a CloudEvent", str(error)) from None
        envelope = seal(broker, event, passed_headers(request.headers.raw))
        if envelope.size > self._max_event_bytes:
            raise self._too_large()
        if not self._dispatcher.passing(envelope):
            await self._catch_up()
        self._dispatcher.accept(envelope)
        return Response(status_code=202)

    async def _body(self, request: Request) -> bytes:
        declared = request.headers.get("content-length", "")
        if declared.isdigit() and int(declared[:18]) > self._max_event_bytes:
            raise self._too_large()
        received = bytearray()
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                async for chunk in request.stream():
                    received += chunk
                    if len(received) > self._max_event_bytes:
                        raise self._too_large()
        except TimeoutError:
            detail = f"the body was not complete within {_BODY_SECONDS:g} s; send it at once"
            raise _refused(408, "slow-request", "The request took too long", detail) from None
        return bytes(received)

    def _too_large(self) -> Refused:
        detail = f"the limit is {self._max_event_bytes} bytes, attributes included; send a link to large data"
        return _refused(413, "event-too-large", "The event is too large", detail)


def problem_response(problem: Problem, retry_after: int | None = None) -> Response:
    """Return a problem as an HTTP answer."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    if problem.status == 405:
        headers |= _ALLOW
    return Response(problem.body(), problem.status, headers, MEDIA_TYPE)


def _broker(request: Request) -> BrokerName:
    """Return the broker named by the exact path.

    The query counts as part of the name, as in Knative.
    """
    path: str = request.scope["path"]
    if path == "/":
        raise _refused(404, "no-broker-named", "No Broker is named", "send events to /NAMESPACE/BROKER")
    parts = path.split("/")
    if len(parts) != 3 or not all(parts[1:]):
        raise _refused(400, "malformed-path", "The path names no Broker", "send events to /NAMESPACE/BROKER")
    query = request.url.query
    return BrokerName(parts[1], f"{parts[2]}?{unquote(query)}" if query else parts[2])


def _refused(status: int, slug: str, title: str, detail: str) -> Refused:
    return Refused(Problem(status, slug, title, detail))
