"""Spans of a call and its requests, in the trace of its event."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from beckon_contract.events import CloudEvent
from beckon_contract.tracing import MEMBERS, continued

_tracer = trace.get_tracer("beckon_tools")


@contextmanager
def processing(call: CloudEvent) -> Iterator[Span]:
    """Trace the processing of a call.

    Spans made by the tool's function belong to this one. Names are those of OpenTelemetry's conventions
    for messages and CloudEvents. The text of an error is in no span: it may be confidential.
    """
    attributes = {
        "cloudevents.event_id": call.id,
        "cloudevents.event_source": call.source,
        "cloudevents.event_spec_version": "1.0",
        "cloudevents.event_type": call.type,
        "messaging.system": "cloudevents",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
    }
    came = {name: str(call.extensions[name]) for name in MEMBERS if name in call.extensions}
    with _span(f"process {call.type}", continued(came), SpanKind.CONSUMER, attributes) as span:
        yield span


@contextmanager
def asking(method: str, url: str) -> Iterator[Span]:
    """Trace a request to an API, without its path and query.

    Those hold arguments and credentials.
    """
    address = urlsplit(url)
    attributes: dict[str, str | int] = {
        "http.request.method": method,
        "server.address": address.hostname or "",
        "server.port": address.port or (443 if address.scheme == "https" else 80),
    }
    with _span(method, None, SpanKind.CLIENT, attributes) as span:
        yield span


@contextmanager
def _span(
    name: str, parent: Context | None, kind: SpanKind, attributes: Mapping[str, str | int]
) -> Iterator[Span]:
    with _tracer.start_as_current_span(
        name, parent, kind, attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except Exception as error:
            failed(span, type(error).__name__)
            raise


def failed(span: Span, error_type: str) -> None:
    """Mark a span as failed."""
    span.set_attribute("error.type", error_type)
    span.set_status(Status(StatusCode.ERROR))
