"""One server span and one count for each request, until its last byte is sent."""

from collections.abc import Callable, Iterable

from fastapi.telemetry import TelemetryConfig
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from beckon_agent.core.context import request_id
from beckon_agent.telemetry.spans import during, mark_failed
from beckon_runtime.tracing import MEMBERS, continued

NOT_BY_FASTAPI: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""For `FastAPI(telemetry=…)`."""

_QUIET = frozenset(("/healthz", "/readyz", "/metrics"))  # asked every few seconds, by nobody who wonders
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_LONGEST_PATH = 200  # characters
_MEMBERS = frozenset(f"{prefix}{name}".encode() for name in MEMBERS for prefix in ("", "ce-"))


class TracedRequests:
    """Traces and counts the requests of an application.

    Requests for the operation of the service are left out. `count` is called with the route and the status of
    each answered request; the route is "" if the request matched none.
    """

    def __init__(self, app: ASGIApp, count: Callable[[str, int], None] | None = None) -> None:
        self._app = app
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["path"] in _QUIET:
            await self._app(scope, receive, send)
            return
        parent = _parent_context(scope["headers"])
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        attributes = {"http.request.method": method, "url.path": scope["path"][:_LONGEST_PATH]}
        with during(method, SpanKind.SERVER, attributes, parent) as span:
            status = 0

            async def send_noting_status(message: Message) -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                    _record_status(span, status)
                await send(message)

            try:
                await self._app(scope, receive, send_noting_status)
            finally:
                route = _route_of(scope)
                _name_span(span, method, route)
                if self._count is not None and status:
                    self._count(route, status)


def _record_status(span: Span, status: int) -> None:
    if span.is_recording():
        span.set_attributes({"http.response.status_code": status, "beckon.request_id": request_id()})
        if status >= 500:
            mark_failed(span, str(status))


def _name_span(span: Span, method: str, route: str) -> None:
    """Name a span after its route.

    The route is known only after routing. Paths are unlimited in number, and so no names.
    """
    if route and span.is_recording():
        span.update_name(f"{method} {route}")
        span.set_attribute("http.route", route)


def _route_of(scope: Scope) -> str:
    """Return the declared route of a request, "" if it matched none.

    FastAPI puts its own route into the scope; Starlette gives only the endpoint.
    """
    found = scope.get("route")
    if found is None and "endpoint" in scope:
        parameters = scope["path_params"].keys()
        for one in scope["app"].routes:
            if isinstance(one, Route) and one.endpoint is scope["endpoint"]:
                found = one if one.param_convertors.keys() == parameters else found
    path = getattr(found, "path", None)
    return path if isinstance(path, str) else ""


def _parent_context(headers: Iterable[tuple[bytes, bytes]]) -> Context | None:
    """Return the trace of the request, or else of its event.

    Every Broker passes on the trace in an event.
    """
    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name in _MEMBERS}
    of_event = {name.removeprefix("ce-"): value for name, value in found.items() if name.startswith("ce-")}
    return continued(found) or continued(of_event)
