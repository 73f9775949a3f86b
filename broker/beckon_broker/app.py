"""The broker's HTTP application: ingress, health, metrics and status."""

from collections.abc import Mapping

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from beckon_broker.dispatcher import Backlog, Dispatcher
from beckon_broker.ingress import Ingress, problem_response
from beckon_broker.metrics import Metrics
from beckon_broker.topology import NotReady, Subscription, Topology, ingress_url
from beckon_contract.knative.triggers import GROUP
from beckon_contract.kubernetes_objects import Key, Unreadable
from beckon_runtime.problem import Problem
from beckon_sources.folders import ManifestFolders

DURABILITY = "in memory: events that are queued when this process ends are lost"
Document = dict[str, object]


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


def describe_backlog(backlog: Backlog) -> Document:
    """Return the load of the queue, and its limits."""
    return {
        "deliveries": backlog.deliveries,
        "maxDeliveries": backlog.max_deliveries,
        "events": backlog.events,
        "bytes": backlog.bytes,
        "maxBytes": backlog.max_bytes,
    }


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

    def __init__(
        self, dispatcher: Dispatcher, manifests: ManifestFolders, metrics: Metrics, base_url: str
    ) -> None:
        self._dispatcher = dispatcher
        self._manifests = manifests
        self._metrics = metrics
        self._base_url = base_url

    async def health(self, _: Request) -> Response:
        """Report the process as alive."""
        return PlainTextResponse("ok\n")

    async def readiness(self, _: Request) -> Response:
        """Answer 200 while events are accepted, 503 while draining."""
        if self._dispatcher.draining:
            problem = Problem(503, "draining", "The broker is stopping", "it takes no more events")
            return problem_response(problem)
        return PlainTextResponse("ready\n")

    async def metrics(self, _: Request) -> Response:
        """Return the counters in Prometheus's text format."""
        return Response(generate_latest(self._metrics.registry), media_type=CONTENT_TYPE_LATEST)

    async def status(self, _: Request) -> Response:
        """Return brokers, triggers, the queue and unreadable manifests as JSON."""
        dispatcher = self._dispatcher
        document = {
            "durability": DURABILITY,
            "draining": dispatcher.draining,
            **describe_topology(dispatcher.topology, dict(dispatcher.loads()), self._base_url),
            "queue": describe_backlog(dispatcher.backlog),
            "unreadable": describe_unreadable(self._manifests.unreadable),
        }
        return Response(orjson.dumps(document, option=orjson.OPT_INDENT_2), media_type="application/json")


def build_app(ingress: Ingress, pages: Pages) -> Starlette:
    """Return the application; all paths except the pages are ingress paths."""
    return Starlette(
        routes=[
            Route("/healthz", pages.health, methods=["GET"]),
            Route("/readyz", pages.readiness, methods=["GET"]),
            Route("/metrics", pages.metrics, methods=["GET"]),
            Route("/status", pages.status, methods=["GET"]),
            Mount("/", ingress),
        ]
    )
