"""The words of errors leave no process with its spans, anyone who put them there."""

from contextlib import suppress

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from beckon_runtime.span_export import RedactingSpanExporter


def test_a_failed_span_is_exported_without_its_words_and_otherwise_whole() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(RedactingSpanExporter(exporter)))
    tracer = provider.get_tracer("a-library", "1")

    with (
        suppress(RuntimeError),
        tracer.start_as_current_span("outer"),
        tracer.start_as_current_span("inner", kind=SpanKind.CLIENT, attributes={"a": 1}) as span,
    ):
        span.add_event("progress", {"done": 5})
        raise RuntimeError("password-1234")

    inner, outer = exporter.get_finished_spans()
    assert "password-1234" not in inner.to_json() + outer.to_json()
    assert (inner.name, inner.kind, dict(inner.attributes or {})) == ("inner", SpanKind.CLIENT, {"a": 1})
    assert inner.status.status_code is StatusCode.ERROR
    assert [event.name for event in inner.events] == ["progress"]
    assert inner.context == span.get_span_context()
    assert inner.parent == outer.context
    assert inner.end_time is not None
    assert inner.instrumentation_scope is not None
    assert inner.instrumentation_scope.name == "a-library"


def test_a_span_without_words_is_exported_as_it_is() -> None:
    exporter = InMemorySpanExporter()
    redacting = RedactingSpanExporter(exporter)
    span = TracerProvider(shutdown_on_exit=False).get_tracer("a").start_span("fine")
    span.end()
    assert isinstance(span, ReadableSpan)

    redacting.export([span])

    assert exporter.get_finished_spans() == (span,)
    assert redacting.force_flush()
