"""The broker's HTTP interface: ingress, health, metrics and status.

The ingress is `POST /NAMESPACE/BROKER`, as in Knative's brokers. Its answers are those of the multi-tenant
broker (knative/eventing, pkg/broker/ingress/ingress_handler.go), with a problem document in place of an empty
body, and with 413, 415 and 503 as limits of memory.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import unquote

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from beckon_broker.dispatcher import Dispatcher
from beckon_broker.envelope import BrokerName, Refused, passed_headers, seal
from beckon_broker.log import UNAVAILABLE, Document, refuse
from beckon_broker.metrics import Metrics
from beckon_broker.source import Source
from beckon_broker.topology import NotReady, Subscription, Topology, ingress_url
from beckon_contract.cloudevents.events import RELAYED, EventError, from_http
from beckon_contract.knative.broker_class import DEDUPLICATION_HEADER, IN_FORCE_PATH
from beckon_contract.knative.triggers import GROUP
from beckon_contract.kubernetes_objects import Key, Unreadable
from beckon_runtime.http_messages import Answer, HangUp, Request, Respond, of_problem, report_defect
from beckon_runtime.posts import RawHeader
from beckon_runtime.problem import Problem

_ALLOW: RawHeader = (b"allow", b"POST, OPTIONS")
# HTTP 1.1 Web Hooks, section 4.
_WEBHOOK: list[RawHeader] = [(b"webhook-allowed-origin", b"*"), (b"webhook-allowed-rate", b"*")]


class Ingress:
    """Takes events: 202 once an event is stored for all matching Triggers.

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
        headers = [(DEDUPLICATION_HEADER.encode(), b"%d" % seconds)] if seconds else []
        self._accepted = Answer(202, headers)

    async def take_event(self, request: Request) -> Answer:
        """Answer one request."""
        try:
            return await self._take_event(request)
        except Refused as refused:
            return self._refuse(refused)

    def refuse_large(self) -> Answer:
        """Return the answer to an event over the limit, and count it."""
        return self._refuse(self._too_large())

    def _refuse(self, refused: Refused) -> Answer:
        self._metrics.refused(refused.problem.slug)
        return _to_answer(refused.problem, refused.retry_after)

    def _too_large(self) -> Refused:
        detail = f"the limit is {self._max_event_bytes} bytes, attributes included; send a link to large data"
        return _refused(413, "event-too-large", "The event is too large", detail)

    async def _take_event(self, request: Request) -> Answer:
        if request.method == "OPTIONS":
            return Answer(200, [_ALLOW, *_WEBHOOK])
        if request.method != "POST":
            raise _refused(405, "method-not-allowed", "Events are sent with POST", "send POST or OPTIONS")
        broker = await self._find_broker(request)
        headers = request.headers
        if dict(headers).get(b"content-encoding", b"identity").lower() != b"identity":
            raise _refused(
                415, "compressed", "Compressed events are not taken", "send the event uncompressed"
            )
        if len(request.body) > self._max_event_bytes:
            raise self._too_large()
        try:
            event = from_http(headers, request.body, relayed=True, versions=RELAYED)
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

    async def _find_broker(self, request: Request) -> BrokerName:
        """Return the Broker of a request. Raises `Refused` if it cannot take events."""
        broker = _broker(unquote(request.path), request.query)
        if why := self._source.why_not_ready:
            raise refuse("starting", "The broker does not know its Triggers yet", why)
        if not self._dispatcher.knows(broker):
            await self._source.catch_up()
        self._dispatcher.check(broker)
        return broker


def _to_answer(problem: Problem, retry_after: int | None = None) -> Answer:
    headers = [] if retry_after is None else [(b"retry-after", b"%d" % retry_after)]
    if problem.status == 405:
        headers.append(_ALLOW)
    return of_problem(problem, "", *headers)


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


Page = tuple[frozenset[str], Callable[[Request], Awaitable[Answer]]]
"""The methods of a page, and what answers a request for it."""

_READ = frozenset(("GET", "HEAD"))
_TEXT: RawHeader = (b"content-type", b"text/plain; charset=utf-8")
_JSON: RawHeader = (b"content-type", b"application/json")
_PROMETHEUS: RawHeader = (b"content-type", CONTENT_TYPE_LATEST.encode())


class Pages:
    """`GET /healthz`, `/readyz`, `/metrics` and `/status`, and what the operator requests."""

    def __init__(self, dispatcher: Dispatcher, source: Source, metrics: Metrics, base_url: str) -> None:
        self._dispatcher = dispatcher
        self._source = source
        self._metrics = metrics
        self._base_url = base_url
        self._pages: Mapping[str, Page] = {
            "/healthz": (_READ, self._health),
            "/readyz": (_READ, self._readiness),
            "/metrics": (_READ, self._show_metrics),
            "/status": (_READ, self._show_status),
            IN_FORCE_PATH: (frozenset(("POST",)), self._in_force),
        }

    def find(self, path: str) -> Page | None:
        """Return the page of a path."""
        return self._pages.get(path)

    async def _health(self, _: Request) -> Answer:
        return Answer(200, [_TEXT], b"ok\n")

    async def _readiness(self, _: Request) -> Answer:
        """Answer 200 while events are accepted, 503 while draining or before the routes are known.

        In a cluster a pod whose log is away stays ready: it answers events with 503 and Retry-After, where a
        Service without ready pods would refuse the connection.
        """
        if self._dispatcher.draining:
            problem = Problem(503, "draining", "The broker is stopping", "it takes no more events")
            return of_problem(problem)
        if why := self._source.why_not_ready:
            return of_problem(Problem(503, "starting", "The broker does not know its Triggers yet", why))
        if (why := self._dispatcher.log.problem) and not self._source.is_cluster:
            return of_problem(Problem(503, UNAVAILABLE, "The broker cannot store events", why))
        return Answer(200, [_TEXT], b"ready\n")

    async def _show_metrics(self, _: Request) -> Answer:
        """Return the counters in Prometheus's text format."""
        empty = {each.key: 0 for each in self._dispatcher.topology.subscriptions()}
        load = await self._dispatcher.log.read_load()
        self._metrics.set_load({**empty, **load.lengths}, load.oldest_seconds)
        return Answer(200, [_PROMETHEUS], generate_latest(self._metrics.registry))

    async def _in_force(self, request: Request) -> Answer:
        """Answer which Triggers of the request are in force, for the operator."""
        try:
            document = await self._source.answer_in_force(request.body)
        except ValueError as error:
            return of_problem(Problem(400, "bad-request", "The request cannot be read", str(error)))
        return Answer(200, [_JSON], orjson.dumps(document))

    async def _show_status(self, _: Request) -> Answer:
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
        return Answer(200, [_JSON], orjson.dumps(document, option=orjson.OPT_INDENT_2))


class Interface:
    """The handler of the broker's port: all paths except the pages are those of the ingress, if there is one.

    Each request has a task: most wait for the log.
    """

    def __init__(self, ingress: Ingress | None, pages: Pages) -> None:
        self._ingress = ingress
        self._pages = pages
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, request: Request, respond: Respond) -> HangUp | None:
        """Answer one request. An event is stored even if its sender hangs up."""
        task = asyncio.create_task(self._answer(request, respond))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return None

    def too_large(self, request: Request, limit: int) -> Answer:
        """Return the answer to a request with a body over the limit."""
        if self._ingress is not None and self._pages.find(request.path) is None:
            return self._ingress.refuse_large()
        problem = Problem(413, "too-large", "The request is too large", f"the limit is {limit} bytes")
        return of_problem(problem)

    async def _answer(self, request: Request, respond: Respond) -> None:
        try:
            answer = await self._find_answer(request)
        except Exception as error:  # one request must not end the service
            answer = report_defect("broker", request.path, error)
        respond(answer)

    async def _find_answer(self, request: Request) -> Answer:
        page = self._pages.find(request.path)
        if page is not None:
            methods, show = page
            return await show(request) if request.method in methods else _wrong_method(methods)
        if self._ingress is not None:
            return await self._ingress.take_event(request)
        detail = "this process delivers events; send them to the ingress of the Broker"
        return of_problem(Problem(404, "no-ingress", "No events are taken here", detail))


def _wrong_method(methods: frozenset[str]) -> Answer:
    allowed = ", ".join(sorted(methods))
    problem = Problem(405, "method-not-allowed", "The page has other methods", f"send {allowed}")
    return of_problem(problem, "", (b"allow", allowed.encode()))
