"""The span of a call that is processed, in the trace that its event came with."""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from beckon_contract.events import CloudEvent
from beckon_contract.tracing import MEMBERS, continued

_tracer = trace.get_tracer("beckon_tools")


@contextmanager
def processing(call: CloudEvent) -> Iterator[Span]:
    """Trace what a call causes; what the function of the tool traces itself belongs to it.

    Names are those of OpenTelemetry's conventions for messages and CloudEvents. The text of an error
    is in no span: it may hold what is nobody else's business.
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
    with _tracer.start_as_current_span(
        f"process {call.type}",
        continued(came),
        SpanKind.CONSUMER,
        attributes,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield span
        except Exception as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR))
            raise
