"""Metrics and spans of a tool's calls."""

import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.registry import Collector

from beckon_contract.cloudevents.events import CloudEvent
from beckon_contract.failures import Reason
from beckon_runtime.tracing import MEMBERS, continued, mark_failed
from beckon_tools.answers import INPUT_MARK, NO_ANSWER_YET

CONTENT_TYPE = CONTENT_TYPE_LATEST

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
_FAILURE = re.compile(rb'\{"error":\{"reason":"(' + "|".join(Reason).encode() + rb')"')


class Counted:
    """One call and its outcome, a crash if no other is set."""

    def __init__(self) -> None:
        self.outcome = "tool_crashed"

    def set_refused(self, slug: str) -> None:
        """Set the outcome to the kind of problem of a refusal."""
        self.outcome = slug.replace("-", "_")

    def set_answered(self, data: bytes) -> None:
        """Set the outcome by the data of the reply."""
        if data == NO_ANSWER_YET:
            self.outcome = "accepted"
        elif data.startswith(INPUT_MARK):
            self.outcome = "input_required"
        else:
            failed = _FAILURE.match(data)
            self.outcome = failed[1].decode() if failed else "replied"


class Metrics:
    """The metrics of one tool, in a registry of its own."""

    def __init__(self, running: Callable[[], float], collectors: Iterable[Collector] = ()) -> None:
        self._registry = CollectorRegistry()
        self._calls = Counter(
            "beckon_tool_calls",
            "Calls that ended, repetitions too, by how.",
            ["outcome"],
            registry=self._registry,
        )
        self._runs = Histogram(
            "beckon_tool_run_seconds",
            "How long the function ran, in seconds.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        Gauge("beckon_tool_running", "Calls that run now.", registry=self._registry).set_function(running)
        for collector in collectors:
            self._registry.register(collector)

    @contextmanager
    def count_call(self) -> Iterator[Counted]:
        """Count a call by the outcome set in the block."""
        call = Counted()
        try:
            yield call
        finally:
            self._calls.labels(call.outcome).inc()

    async def time_run(self, run: Awaitable[bytes]) -> bytes:
        """Measure one run of the function."""
        began = time.monotonic()
        try:
            return await run
        finally:
            self._runs.observe(time.monotonic() - began)

    def to_text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._registry)


_tracer = trace.get_tracer("beckon_tools")


@contextmanager
def trace_processing(call: CloudEvent) -> Iterator[Span]:
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
    with _open_span(f"process {call.type}", continued(came), SpanKind.CONSUMER, attributes) as span:
        yield span


@contextmanager
def trace_request(method: str, url: str) -> Iterator[Span]:
    """Trace a request to an API, without its path and query. Those hold arguments and credentials."""
    address = urlsplit(url)
    attributes: dict[str, str | int] = {
        "http.request.method": method,
        "server.address": address.hostname or "",
        "server.port": address.port or (443 if address.scheme == "https" else 80),
    }
    with _open_span(method, None, SpanKind.CLIENT, attributes) as span:
        yield span


@contextmanager
def _open_span(
    name: str, parent: Context | None, kind: SpanKind, attributes: Mapping[str, str | int]
) -> Iterator[Span]:
    with _tracer.start_as_current_span(
        name, parent, kind, attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except Exception as error:
            mark_failed(span, type(error).__name__)
            raise
