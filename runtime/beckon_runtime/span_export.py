"""Export of spans by OTLP over HTTP, without the text of errors.

An error's text may hold arguments and results, so the exporter removes it from spans.
"""

from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased
from opentelemetry.trace import Status

_WORDS = "exception"  # the event of the conventions for exceptions: message and stack trace


class RedactingSpanExporter(SpanExporter):
    """Passes spans to another exporter, without the words of errors."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export a batch."""
        return self._exporter.export([_without_words(span) for span in spans])

    def shutdown(self) -> None:
        """Shut down the other exporter."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Flush the other exporter."""
        return self._exporter.force_flush(timeout_millis)


def _without_words(span: ReadableSpan) -> ReadableSpan:
    events = [event for event in span.events if event.name != _WORDS]
    if len(events) == len(span.events) and not span.status.description:
        return span
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=span.attributes,
        events=events,
        links=span.links,
        kind=span.kind,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )


class _OneResource(Resource):
    """The resource of a process, hashed once: the exporter asks for it with every span.

    The hash of the SDK writes all attributes as JSON, which is a quarter of what exporting a span takes.
    """

    def __init__(self, attributes: Resource) -> None:
        super().__init__(dict(attributes.attributes), attributes.schema_url)
        self._hash = super().__hash__()

    def __eq__(self, other: object) -> bool:
        return other is self or super().__eq__(other)

    def __hash__(self) -> int:
        return self._hash


def provider(service: str, *, redacted: bool) -> TracerProvider:
    """Return a tracer provider configured by OpenTelemetry's variables; see `tracing.start`."""
    resource = Resource.create({"service.name": service, **OTELResourceDetector().detect().attributes})
    provider = TracerProvider(resource=_OneResource(resource))
    exporter = RedactingSpanExporter(OTLPSpanExporter()) if redacted else OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def follows_parents(made: TracerProvider) -> bool:
    """Return True if spans follow the sampling decision of their parents.

    A trace that is not sampled at its beginning is then sampled nowhere.
    """
    return isinstance(made.sampler, ParentBased)
