"""One server span a request, with the caller's trace as its parent; it lasts until the last byte is out.

FastAPI has spans of its own, which would put the query of every request into them, keys and all, and
add a span for each step of the framework: `NOT_BY_FASTAPI` turns them off.
"""

from collections.abc import Iterable

from fastapi.telemetry import TelemetryConfig
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from beckon_agent.request_id import request_id
from beckon_agent.telemetry.spans import during, failed
from beckon_contract.tracing import MEMBERS, continued

NOT_BY_FASTAPI: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""For `FastAPI(telemetry=…)`."""

_QUIET = frozenset(("/healthz", "/readyz", "/metrics"))  # asked every few seconds, by nobody who wonders
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_LONGEST_PATH = 200  # characters
_MEMBERS = frozenset(f"{prefix}{name}".encode() for name in MEMBERS for prefix in ("", "ce-"))


class TracedRequests:
    """Traces the requests of an application; those for the operation of the service are left out."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["path"] in _QUIET:
            await self._app(scope, receive, send)
            return
        parent = _parent(scope["headers"])
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        attributes = {"http.request.method": method, "url.path": scope["path"][:_LONGEST_PATH]}
        with during(method, SpanKind.SERVER, attributes, parent) as span:
            if not span.is_recording():
                await self._app(scope, receive, send)
                return
            try:
                await self._app(scope, receive, _noting(span, send))
            finally:
                _name(span, method, scope)


def _noting(span: Span, send: Send) -> Send:
    async def noting(message: Message) -> None:
        if message["type"] == "http.response.start":
            span.set_attribute("http.response.status_code", message["status"])
            span.set_attribute("beckon.request_id", request_id())
            if message["status"] >= 500:
                failed(span, str(message["status"]))
        await send(message)

    return noting


def _name(span: Span, method: str, scope: Scope) -> None:
    """Name a span after its route, which is known once the request was routed; paths are without number."""
    route = getattr(scope.get("route"), "path", None)
    if isinstance(route, str):
        span.update_name(f"{method} {route}")
        span.set_attribute("http.route", route)


def _parent(headers: Iterable[tuple[bytes, bytes]]) -> Context | None:
    """Return the trace of the request, or that of the event in it, which every Broker passes on."""
    found = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name in _MEMBERS}
    of_event = {name.removeprefix("ce-"): value for name, value in found.items() if name.startswith("ce-")}
    return continued(found) or continued(of_event)
