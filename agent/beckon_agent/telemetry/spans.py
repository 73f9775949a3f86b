"""Telemetry's start and end, the fields of log lines, and a server span and a count for each request.

The span of a request ends with its last byte.
"""

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from contextvars import Token
from types import TracebackType
from typing import TypeVar

from fastapi.telemetry import TelemetryConfig
from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, SpanKind
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from beckon_agent.core.context import request_id
from beckon_runtime import tracing
from beckon_runtime.tracing import MEMBERS, carried, continued, is_unrecorded, mark_failed

VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""The setting of the GenAI conventions for content in spans; without it there is none."""

_YES = frozenset(("true", "span_only", "span_and_event"))
# We write no events, so `event_only` asks for nothing.
_NO = frozenset(("", "false", "no_content", "event_only"))

_captured = False


def is_content_wanted(environment: Mapping[str, str]) -> bool:
    """Return True if the environment requests content in spans. Raises `ValueError` for an unknown value."""
    word = environment.get(VARIABLE, "").strip().lower()
    if word not in _YES | _NO:
        raise ValueError(f"{VARIABLE}: use SPAN_ONLY, or leave it unset for spans without content")
    return word in _YES


def capture_content(*, enabled: bool) -> None:
    """Enable or disable content in the spans of this process."""
    global _captured  # noqa: PLW0603  # the tracer that it goes with is one for the process, too
    _captured = enabled


def captures_content() -> bool:
    """Return True if spans hold content."""
    return _captured


def start_telemetry(environment: Mapping[str, str] = os.environ) -> Callable[[], None]:
    """Export spans to the collector named in the environment.

    Returns a function to export the last spans and stop. Nothing is exported without a collector. Raises
    `ValueError` for an OpenTelemetry variable with an unusable value.
    """
    capture_content(enabled=is_content_wanted(environment))
    return tracing.start("beckon-agent", environment, redacted=True)


def log_fields() -> dict[str, str]:
    """Return the trace and request fields of a log line."""
    request = request_id()
    return tracing.log_fields() | ({} if request == "-" else {"request_id": request})


Item = TypeVar("Item")
Value = str | int | float | bool | list[str]

_tracer = trace.get_tracer("beckon_agent")


def begin_span(name: str, kind: SpanKind, attributes: Mapping[str, Value]) -> Span:
    """Begin a span below the current one; the caller ends it."""
    if is_unrecorded():
        return trace.get_current_span()
    return _tracer.start_span(name, None, kind, attributes)


class during:  # noqa: N801  # read as a statement: with during(…)
    """Make a new span the current one for a block.

    Its parent is the current span, or the span of a given context. This is a class because it takes half the
    time of nested generators. Do not use it around the items of a generator, which may run in several tasks:
    see `iterate_within`.
    """

    __slots__ = ("_attributes", "_kind", "_name", "_parent", "_span", "_token")

    def __init__(
        self, name: str, kind: SpanKind, attributes: Mapping[str, Value], parent: Context | None = None
    ) -> None:
        self._name = name
        self._kind = kind
        self._attributes = attributes
        self._parent = parent
        self._token: Token[Context] | None = None

    def __enter__(self) -> Span:
        if self._parent is None and is_unrecorded():
            self._span = trace.get_current_span()
            return self._span
        self._span = _tracer.start_span(self._name, self._parent, self._kind, self._attributes)
        self._token = attach(trace.set_span_in_context(self._span, self._parent))
        return self._span

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._token is None:
            return
        detach(self._token)
        if isinstance(error, Exception):
            mark_failed(self._span, type(error).__name__)
        self._span.end()


async def iterate_within(span: Span, items: AsyncGenerator[Item]) -> AsyncGenerator[Item]:
    """Yield the items; the span is current only while each is awaited.

    The consumer may take each item in another task, and does not work under this span.
    """
    same = span.get_span_context() == trace.get_current_span().get_span_context()
    async with aclosing(items):
        if same:  # nothing is traced, or not here
            async for item in items:
                yield item
            return
        here = trace.set_span_in_context(span)
        while True:
            token = attach(here)
            try:
                item = await anext(items)
            except StopAsyncIteration:
                return
            finally:
                detach(token)
            yield item


_MEMBER = "traceparent"


def trace_to_request() -> dict[str, object]:
    """Return the current trace as a member of a run's `request`. Without a trace the result is empty."""
    return {_MEMBER: carried()[_MEMBER]} if _MEMBER in carried() else {}


@contextmanager
def resume_trace(request: Mapping[str, object]) -> Iterator[None]:
    """Continue the trace stored in a run's `request` inside the block."""
    noted = request.get(_MEMBER)
    context = continued({_MEMBER: noted}) if isinstance(noted, str) else None
    if context is None:
        yield
        return
    token = attach(context)
    try:
        yield
    finally:
        detach(token)


NOT_BY_FASTAPI: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""For `FastAPI(telemetry=…)`."""

_QUIET = frozenset(("/healthz", "/readyz", "/metrics"))  # probes and scrapers request these every few seconds
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
    route = scope.get("route")
    if route is None and "endpoint" in scope:
        parameters = scope["path_params"].keys()
        for one in scope["app"].routes:
            if isinstance(one, Route) and one.endpoint is scope["endpoint"]:
                route = one if one.param_convertors.keys() == parameters else route
    path = getattr(route, "path_format", None) or getattr(route, "path", None)
    return path if isinstance(path, str) else ""


def _parent_context(headers: Iterable[tuple[bytes, bytes]]) -> Context | None:
    """Return the trace of the request, or else of its event. Every Broker passes on the trace in an event."""
    members = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers if name in _MEMBERS}
    of_event = {name.removeprefix("ce-"): value for name, value in members.items() if name.startswith("ce-")}
    return continued(members) or continued(of_event)
