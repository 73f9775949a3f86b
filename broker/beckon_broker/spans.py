"""The spans of the broker: one per delivery attempt, below the sender's span.

They wrap the posts, which know nothing of them. The module is imported only with a collector. The event
keeps its `traceparent`; the delivering request has the one of the attempt.
"""

from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind

from beckon_broker.sender import Headers, Post
from beckon_runtime.posts import Ack
from beckon_runtime.tracing import MEMBERS, carried_by, continued, mark_failed

_EVENT = {"ce-id": "event_id", "ce-source": "event_source", "ce-type": "event_type"}

_tracer = trace.get_tracer("beckon_broker")


class TracedPost:
    """Posts as another one does, each in a span."""

    def __init__(self, post: Post) -> None:
        self._post = post

    async def __call__(self, url: str, headers: Headers, body: bytes, timeout: float) -> Ack:
        """POST these bytes."""
        by_name = dict(headers)
        event_type = by_name.get("ce-type")  # which an event in structured mode does not show
        name = f"deliver {event_type}" if event_type else "deliver"
        span = _tracer.start_span(name, _parent(by_name), SpanKind.CLIENT, _attributes(url, by_name))
        own = [(key, value) for key, value in headers if key not in MEMBERS] + list(carried_by(span).items())
        try:
            answer = await self._post(url, own, body, timeout)
            if not answer.status:
                mark_failed(span, "no_answer")
                return answer
            span.set_attribute("http.response.status_code", answer.status)
            if answer.status >= 400:
                mark_failed(span, str(answer.status))
            return answer
        finally:
            span.end()


def _attributes(url: str, headers: dict[str, str]) -> dict[str, str | int]:
    address = urlsplit(url)
    attributes = {
        f"cloudevents.{name}": headers[header] for header, name in _EVENT.items() if header in headers
    }
    return {
        "http.request.method": "POST",
        "server.address": address.hostname or "",
        "server.port": address.port or (443 if address.scheme == "https" else 80),
        "messaging.system": "cloudevents",
        **attributes,
    }


def _parent(headers: dict[str, str]) -> Context | None:
    """Return the trace of the event, or else of its request."""
    of_event = {name: headers[f"ce-{name}"] for name in MEMBERS if f"ce-{name}" in headers}
    return continued(of_event) or continued(headers)
