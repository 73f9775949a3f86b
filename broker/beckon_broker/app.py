"""The broker's HTTP application: ingress, health, metrics and status."""

import orjson
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route

from beckon_broker.dispatcher import Dispatcher
from beckon_broker.ingress import Ingress, problem_response
from beckon_broker.metrics import Metrics
from beckon_broker.status import DURABILITY, describe_backlog, describe_topology, describe_unreadable
from beckon_runtime.problem import Problem
from beckon_sources.folders import ManifestFolders


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
