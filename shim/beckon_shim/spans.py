"""The spans of the shim: one per call and one per reply.

The span of a call lasts from its arrival to its answer. Spans wrap the handlers, which know nothing of them.
The module is imported only if a collector is named; without one the shim loads nothing for it. The event of a
call keeps the `traceparent` of its sender, so the tool's span is below the caller's; the request to the
Broker has that of the span here, so the spans of a tracing Broker are below the shim's (CloudEvents,
distributed tracing extension).
"""

from dataclasses import replace
from functools import partial

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind

from beckon_runtime.http_messages import Answer, Handler, HangUp, Piece, Request, Respond
from beckon_runtime.posts import RawHeader
from beckon_runtime.tracing import MEMBERS, carried_by, continued, mark_failed
from beckon_shim.receipts import RECEIPTS

_LONGEST = 200  # characters of what a stranger wrote
_EVENT = {b"ce-id": "event_id", b"ce-source": "event_source", b"ce-type": "event_type"}
_HEADERS = frozenset(name.encode() for name in MEMBERS)
_OF_EVENT = frozenset(b"ce-" + name for name in _HEADERS)

_tracer = trace.get_tracer("beckon_shim")


class Traced:
    """A handler with a span for each request with an event. `route` is the name of their path."""

    def __init__(self, handler: Handler, route: str | None = None) -> None:
        """Without a `route`, the path of the request is its name. Such paths are few."""
        self._handler = handler
        self._route = route

    def handle(self, request: Request, respond: Respond) -> HangUp | None:
        """Take one request."""
        if request.method != "POST" or request.path.startswith(RECEIPTS):
            return self._handler.handle(request, respond)
        parent = _parent(request.headers)
        route = self._route or request.path[:_LONGEST]
        span = _tracer.start_span(f"POST {route}", parent, SpanKind.SERVER, _attributes(request, route))
        attributes = [header for header in request.headers if header[0] not in _HEADERS]
        own = [(name.encode(), value.encode()) for name, value in carried_by(span).items()]
        return self._handler.handle(
            replace(request, headers=attributes + own), partial(_answered, span, respond)
        )

    def too_large(self, request: Request, limit: int) -> Answer:
        """Return the answer to a request with a body over the limit. It gets no span."""
        return self._handler.too_large(request, limit)


def _answered(span: Span, respond: Respond, attribute: Answer | Piece) -> None:
    answer = attribute.whole if isinstance(attribute, Piece) else attribute
    if answer is not None:
        _end(span, answer)
    respond(attribute)


def _end(span: Span, answer: Answer) -> None:
    if span.is_recording():
        span.set_attributes(
            {"http.response.status_code": answer.status, "beckon.shim.outcome": answer.outcome}
        )
        if answer.status >= 500:
            mark_failed(span, answer.outcome)
    span.end()


def _attributes(request: Request, route: str) -> dict[str, str]:
    attributes = {
        "http.request.method": "POST",
        "url.path": request.path[:_LONGEST],
        "http.route": route,
        "messaging.system": "cloudevents",
    }
    for name, value in request.headers:
        if name in _EVENT:
            attributes[f"cloudevents.{_EVENT[name]}"] = value[:_LONGEST].decode("latin-1")
        elif name == b"x-request-id":
            attributes["beckon.request_id"] = value[:_LONGEST].decode("latin-1")
    return attributes


def _parent(headers: list[RawHeader]) -> Context | None:
    """Return the trace context of the request, or of its event."""
    members = {name.decode(): value.decode("latin-1") for name, value in headers if name in _HEADERS}
    of_event = {name[3:].decode(): value.decode("latin-1") for name, value in headers if name in _OF_EVENT}
    return continued(members) or continued(of_event)
