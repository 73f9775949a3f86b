"""Spans of this process: it can have one tracer provider, which records only while a test asks."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Switch(trace.TracerProvider):
    """Gives tracers that record while it is on, and are the no-operations of the API while it is off."""

    def __init__(self, provider: TracerProvider) -> None:
        self.provider = provider
        self.on = False

    def get_tracer(self, *named: Any, **more: Any) -> trace.Tracer:
        return Switched(self, self.provider.get_tracer(*named, **more))


class Switched(trace.Tracer):
    """A tracer of the switch."""

    def __init__(self, switch: Switch, recording: trace.Tracer) -> None:
        self._switch = switch
        self._recording = recording

    @property
    def _chosen(self) -> trace.Tracer:
        return self._recording if self._switch.on else trace.NoOpTracer()

    def start_span(self, *given: Any, **named: Any) -> trace.Span:
        return self._chosen.start_span(*given, **named)

    def start_as_current_span(self, *given: Any, **named: Any) -> Any:
        return self._chosen.start_as_current_span(*given, **named)


class Spans:
    """What was recorded since the test began."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    @property
    def all(self) -> list[ReadableSpan]:
        return list(self._exporter.get_finished_spans())

    @property
    def names(self) -> list[str]:
        """The names, in the order in which the spans ended."""
        return [span.name for span in self.all]

    def one(self, name: str) -> ReadableSpan:
        """The only span of a name."""
        (found,) = [span for span in self.all if span.name == name]
        return found


EXPORTER = InMemorySpanExporter()
SWITCH = Switch(TracerProvider(shutdown_on_exit=False))
SWITCH.provider.add_span_processor(SimpleSpanProcessor(EXPORTER))


@pytest.fixture
def spans() -> Iterator[Spans]:
    """Record spans for the time of a test."""
    if trace.get_tracer_provider() is not SWITCH:
        trace.set_tracer_provider(SWITCH)
    EXPORTER.clear()
    SWITCH.on = True
    try:
        yield Spans(EXPORTER)
    finally:
        SWITCH.on = False
