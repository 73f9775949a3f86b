"""The broker's HTTP application: ingress, health, metrics and status.

The ingress is `POST /NAMESPACE/BROKER`, as in Knative's brokers. Its answers are those of the multi-tenant
broker (knative/eventing, pkg/broker/ingress/ingress_handler.go), with a problem document in place of an empty
body, and with 413, 415 and 503 as limits of memory.
"""

from collections.abc import Mapping
from urllib.parse import unquote

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from beckon_broker.dispatcher import Dispatcher
from beckon_broker.envelope import BrokerName, Refused, passed_headers, seal
from beckon_broker.log import UNAVAILABLE, Document, refuse
from beckon_broker.metrics import Metrics
from beckon_broker.source import Source
from beckon_broker.topology import NotReady, Subscription, Topology, ingress_url
from beckon_contract.cloudevents.events import RELAYED, EventError, RawHeaders, from_http
from beckon_contract.knative.broker_class import DEDUPLICATION_HEADER, IN_FORCE_PATH
from beckon_contract.knative.triggers import GROUP
from beckon_contract.kubernetes_objects import Key, Unreadable
from beckon_runtime.problem import MEDIA_TYPE, Problem

_ALLOW = {"allow": "POST, OPTIONS"}
_WEBHOOK = {"webhook-allowed-origin": "*", "webhook-allowed-rate": "*"}  # HTTP 1.1 Web Hooks, section 4


class Ingress:
    """An ASGI application: 202 once an event is stored for all matching Triggers.

    The source catches up for an event without a known Broker or a matching Trigger: the sender may have read
    a newer Trigger than this broker has, like an agent that offers a tool and gets a call for it at once.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        source: Source,
        metrics: Metrics,
        max_event_bytes: int,
    ) -> None:
        self._dispatcher = dispatcher
        self._source = source
        self._metrics = metrics
        self._max_event_bytes = max_event_bytes
        seconds = dispatcher.log.deduplication_seconds
        headers = {DEDUPLICATION_HEADER: str(seconds)} if seconds else None
        self._accepted = Response(status_code=202, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            response = await self._answer(scope, receive)
        except Refused as refused:
            self._metrics.refused(refused.problem.slug)
            response = problem_response(refused.problem, refused.retry_after)
        except ClientDisconnect:
            return
        await response(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        if scope["method"] == "OPTIONS":
            return Response(headers={**_ALLOW, **_WEBHOOK})
        if scope["method"] != "POST":
            raise _refused(405, "method-not-allowed", "Events are sent with POST", "send POST or OPTIONS")
        broker = await self._find_broker(scope)
        headers: RawHeaders = scope["headers"]
        by_name = dict(headers)
        if by_name.get(b"content-encoding", b"identity").lower() != b"identity":
            raise _refused(
                415, "compressed", "Compressed events are not taken", "send the event uncompressed"
            )
        body = await self._body(by_name.get(b"content-length", b""), receive)
        try:
            event = from_http(headers, body, relayed=True, versions=RELAYED)
        except EventError as error:
            raise _refused(400, "not-an-event", "The request is not a CloudEvent", str(error)) from None
        envelope = seal(broker, event, passed_headers(headers))
        if envelope.size > self._max_event_bytes:
            raise self._too_large()
        matching = self._dispatcher.passing(envelope)
        if not matching:
            await self._source.catch_up()
            matching = self._dispatcher.passing(envelope)
        await self._dispatcher.accept(envelope, matching)
        return self._accepted

    async def _find_broker(self, scope: Scope) -> BrokerName:
        """Return the Broker of a request. Raises `Refused` if it cannot take events."""
        broker = _broker(scope["path"], scope["query_string"].decode("latin-1"))
        if why := self._source.why_not_ready:
            raise refuse("starting", "The broker does not know its Triggers yet", why)
        if not self._dispatcher.knows(broker):
            await self._source.catch_up()
        self._dispatcher.check(broker)
        return broker

    async def _body(self, length: bytes, receive: Receive) -> bytes:
        """Return the body of a request with this Content-Length. Raises `Refused` or `ClientDisconnect`."""
        if length.isdigit() and int(length[:18]) > self._max_event_bytes:
            raise self._too_large()
        received, is_complete = bytearray(), False
        while not is_complete:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            received += message.get("body", b"")
            if len(received) > self._max_event_bytes:
                raise self._too_large()
            is_complete = not message.get("more_body", False)
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


def _broker(path: str, query: str) -> BrokerName:
    """Return the broker named by the exact path. The query counts as part of the name, as in Knative."""
    if path == "/":
        raise _refused(404, "no-broker-named", "No Broker is named", "send events to /NAMESPACE/BROKER")
    parts = path.split("/")
    if len(parts) != 3 or not all(parts[1:]):
        raise _refused(400, "malformed-path", "The path names no Broker", "send events to /NAMESPACE/BROKER")
    return BrokerName(parts[1], f"{parts[2]}?{unquote(query)}" if query else parts[2])


def _refused(status: int, slug: str, title: str, detail: str) -> Refused:
    return Refused(Problem(status, slug, title, detail))


def describe_topology(topology: Topology, loads: Mapping[Key, int], base_url: str) -> Document:
    """Return the `brokers` and `triggers`, with a reason if not ready.

    `queued` counts a Trigger's open deliveries. A ready object may have a reason, too: after an invalid edit
    its last valid version stays in force.
    """
    notes = {each.key: each for each in topology.not_ready}
    ready = topology.subscriptions()
    brokers: list[Document] = [
        {
            "namespace": broker.namespace,
            "name": broker.name,
            "ready": True,
            **_not_ready_document(notes.get(Key(GROUP, "Broker", *broker))),
            "url": ingress_url(base_url, broker),
            "triggers": [each.key.name for each in subscriptions],
        }
        for broker, subscriptions in topology.brokers.items()
    ]
    served = {each.key for each in ready}
    triggers = [_ready(each, loads.get(each.key, 0), notes.get(each.key)) for each in ready]
    for note in topology.not_ready:
        if note.key.kind == "Trigger" and note.key not in served:
            triggers.append(_not_ready(note))
        if note.key.kind == "Broker" and (note.key.namespace, note.key.name) not in topology.brokers:
            brokers.append(_not_ready(note))
    return {"brokers": brokers, "triggers": triggers}


def describe_unreadable(unreadable: tuple[Unreadable, ...]) -> list[Document]:
    """Return the unreadable parts of the manifests."""
    return [{"origin": each.origin, "message": each.message} for each in unreadable]


def _ready(subscription: Subscription, queued: int, note: NotReady | None) -> Document:
    return {
        **_identity(subscription.key),
        "broker": subscription.broker.name,
        "ready": True,
        **_not_ready_document(note),
        "subscriber": subscription.subscriber,
        "deadLetterSink": subscription.dead_letter,
        "queued": queued,
    }


def _not_ready(note: NotReady) -> Document:
    return {**_identity(note.key), "ready": False, **_not_ready_document(note)}


def _not_ready_document(note: NotReady | None) -> Document:
    return {"reason": note.reason, "message": note.message} if note else {"reason": "", "message": ""}


def _identity(key: Key) -> Document:
    return {"namespace": key.namespace, "name": key.name}


class Pages:
    """`GET /healthz`, `/readyz`, `/metrics` and `/status`."""

    def __init__(self, dispatcher: Dispatcher, source: Source, metrics: Metrics, base_url: str) -> None:
        self._dispatcher = dispatcher
        self._source = source
        self._metrics = metrics
        self._base_url = base_url

    async def health(self, _: Request) -> Response:
        """Report the process as alive."""
        return PlainTextResponse("ok\n")

    async def readiness(self, _: Request) -> Response:
        """Answer 200 while events are accepted, 503 while draining or before the routes are known.

        In a cluster a pod whose log is away stays ready: it answers events with 503 and Retry-After, where a
        Service without ready pods would refuse the connection.
        """
        if self._dispatcher.draining:
            problem = Problem(503, "draining", "The broker is stopping", "it takes no more events")
            return problem_response(problem)
        if why := self._source.why_not_ready:
            return problem_response(
                Problem(503, "starting", "The broker does not know its Triggers yet", why)
            )
        if (why := self._dispatcher.log.problem) and not self._source.is_cluster:
            return problem_response(Problem(503, UNAVAILABLE, "The broker cannot store events", why))
        return PlainTextResponse("ready\n")

    async def metrics(self, _: Request) -> Response:
        """Return the counters in Prometheus's text format."""
        empty = {each.key: 0 for each in self._dispatcher.topology.subscriptions()}
        load = await self._dispatcher.log.read_load()
        self._metrics.set_load({**empty, **load.lengths}, load.oldest_seconds)
        return Response(generate_latest(self._metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def in_force(self, request: Request) -> Response:
        """Answer which Triggers of the request are in force, for the operator."""
        try:
            document = await self._source.answer_in_force(await request.body())
        except ValueError as error:
            return problem_response(Problem(400, "bad-request", "The request cannot be read", str(error)))
        return Response(orjson.dumps(document), media_type="application/json")

    async def status(self, _: Request) -> Response:
        """Return brokers, triggers, the queue and unreadable manifests as JSON."""
        dispatcher = self._dispatcher
        load = await dispatcher.log.read_load()
        document = {
            "durability": dispatcher.log.durability,
            "draining": dispatcher.draining,
            **describe_topology(dispatcher.topology, load.lengths, self._base_url),
            "queue": dispatcher.log.describe(),
            "unreadable": describe_unreadable(self._source.unreadable),
        }
        return Response(orjson.dumps(document, option=orjson.OPT_INDENT_2), media_type="application/json")


def build_app(ingress: Ingress | None, pages: Pages) -> ASGIApp:
    """Return the application; all paths except the pages are ingress paths, if there is one.

    Events go to the ingress directly: the search for a route costs as much as reading the event.
    """
    routes = [
        Route("/healthz", pages.health, methods=["GET"]),
        Route("/readyz", pages.readiness, methods=["GET"]),
        Route("/metrics", pages.metrics, methods=["GET"]),
        Route("/status", pages.status, methods=["GET"]),
        Route(IN_FORCE_PATH, pages.in_force, methods=["POST"]),
    ]
    if ingress is None:
        return Starlette(routes=routes)
    router = Starlette(routes=[*routes, Mount("/", ingress)])
    paths = {route.path for route in routes}

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        handler: ASGIApp = router if scope["path"] in paths else ingress
        await handler(scope, receive, send)

    return serve
