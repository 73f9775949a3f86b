"""Traces: started if a collector is named, continued across services.

The variables are those of OpenTelemetry (opentelemetry.io, "Environment Variable Specification");
its SDK reads the rest of them itself. Without a collector no SDK is loaded, and spans are the
no-operations of its API. Needs the extra `tracing` of this package.
"""

from collections.abc import Callable, Mapping

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from beckon_runtime import collectors

MEMBERS = ("traceparent", "tracestate")
"""The headers of W3C Trace Context, and the attributes of CloudEvents' extension for distributed tracing."""

_LONGEST_STATE = 512  # characters that W3C Trace Context asks everybody to pass on

# Not the global one: it would pass on the baggage of strangers, whatever they put into it.
_W3C = TraceContextTextMapPropagator()

_follows_parents = False


def start(service: str, environment: Mapping[str, str], *, redacted: bool = False) -> Callable[[], None]:
    """Start exporting the spans of this process.

    Returns the function that sends the last spans and ends the export. `service` is the name if
    OTEL_SERVICE_NAME gives none. If the environment names no collector, nothing is loaded. With `redacted`
    the words of errors are left out of all spans, also those of libraries. Raises `ValueError` for a
    variable that cannot be used.
    """
    if not collectors.is_named(environment):
        return lambda: None
    global _follows_parents  # noqa: PLW0603  # the tracer that it goes with is one for the process, too
    # Imported late: 9 MB and 0.2 s that a service without a collector need not spend.
    from beckon_runtime import span_export  # noqa: PLC0415  # see above

    provider = span_export.provider(service, redacted=redacted)
    _follows_parents = span_export.follows_parents(provider)
    trace.set_tracer_provider(provider)
    return provider.shutdown


def is_unrecorded() -> bool:
    """Return True if a new span would not be exported.

    Such a span need not be made. This is so if spans are not exported, and if the current trace is not
    sampled: a trace that its sampler left out at the beginning, here or at a caller, is left out with
    everything below it.
    """
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return True
    if not _follows_parents:
        return False
    current = trace.get_current_span().get_span_context()
    return current.is_valid and not current.trace_flags.sampled


def carried() -> dict[str, str]:
    """Return the trace members of a message to send.

    With them it joins the current trace; without a trace there are none.
    """
    carrier: dict[str, str] = {}
    _W3C.inject(carrier)
    return carrier


def carried_by(span: trace.Span) -> dict[str, str]:
    """Return the trace members of a message below this span.

    With them the message joins the trace of the span.
    """
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, trace.set_span_in_context(span, Context()))
    return carrier


def continued(carrier: Mapping[str, str]) -> Context | None:
    """Return the context of an incoming trace, `None` if absent or malformed."""
    if "traceparent" not in carrier:
        return None
    members = {name: carrier.get(name, "") for name in MEMBERS}
    context = _W3C.extract(
        {name: value for name, value in members.items() if 0 < len(value) <= _LONGEST_STATE}, Context()
    )
    return context if trace.get_current_span(context).get_span_context().is_valid else None


def mark_failed(span: trace.Span, error_type: str) -> None:
    """Mark a span as failed with an error type.

    The text of the error is left out, because it may hold private data.
    """
    span.set_attribute("error.type", error_type)
    span.set_status(trace.Status(trace.StatusCode.ERROR))


def log_fields() -> dict[str, str]:
    """Return the log fields of the current span, none without a span."""
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(span.trace_id), "span_id": trace.format_span_id(span.span_id)}
