"""Spans without the words of errors.

A library may put them into its spans, and anything may be in them. This module loads OpenTelemetry's SDK,
so it is imported only where spans are exported.
"""

from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Status

_WORDS = "exception"  # the event of the conventions for exceptions: message and stack trace


class Wordless(SpanExporter):
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
