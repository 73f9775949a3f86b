"""Traces: begun where a collector is named, and carried from one service to the next.

The variables are those of OpenTelemetry (opentelemetry.io, "Environment Variable Specification");
its SDK reads the rest of them itself. Without a collector no SDK is loaded, and spans are the
no-operations of its API. Needs the extra `tracing` of this package.
"""

from collections.abc import Callable, Mapping

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

MEMBERS = ("traceparent", "tracestate")
"""The headers of W3C Trace Context, and the attributes of CloudEvents' extension for distributed tracing."""

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_LONGEST_STATE = 512  # characters that W3C Trace Context asks everybody to pass on

# Not the global one: it would pass on the baggage of strangers, whatever they put into it.
_W3C = TraceContextTextMapPropagator()


def start(service: str, environment: Mapping[str, str], *, wordless: bool = False) -> Callable[[], None]:
    """Begin to export the spans of this process; return what sends the last ones and ends it.

    `service` is the name where OTEL_SERVICE_NAME gives none. Where the environment names no collector,
    nothing is loaded. With `wordless` the words of errors are left out of all spans, whoever made them.
    Raises `ValueError` for a variable that cannot be used.
    """
    if not _wanted(environment):
        return lambda: None
    # Imported late: 9 MB and 0.2 s that a service without a collector need not spend.
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415  # see above
        OTLPSpanExporter,
    )
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource  # noqa: PLC0415  # see above
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415  # see above
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415  # see above

    from beckon_contract.wordless import Wordless  # noqa: PLC0415  # see above

    resource = Resource.create({"service.name": service, **OTELResourceDetector().detect().attributes})
    provider = TracerProvider(resource=resource)
    exporter = Wordless(OTLPSpanExporter()) if wordless else OTLPSpanExporter()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return provider.shutdown


def _wanted(environment: Mapping[str, str]) -> bool:
    """Whether there is a collector to send to; raise `ValueError` where it cannot be spoken to."""
    named = [name for name in _ENDPOINTS if environment.get(name)]
    disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if not named or disabled or environment.get("OTEL_TRACES_EXPORTER") == "none":
        return False
    if not environment[named[0]].startswith(("http://", "https://")):
        raise ValueError(f"{named[0]}: write the collector's URL, such as http://collector:4318")
    for name in _PROTOCOLS:
        if environment.get(name, "http/protobuf") != "http/protobuf":
            raise ValueError(
                f"{name}: only http/protobuf is spoken here; unset it, and name the collector's port "
                "for OTLP over HTTP, which is usually 4318"
            )
    return True


def carried() -> dict[str, str]:
    """Return the members by which what is sent now joins the current trace, none where there is none."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier)
    return carrier


def continued(carrier: Mapping[str, str]) -> Context | None:
    """Return the context of the trace that came along, `None` where none did or it is malformed."""
    if "traceparent" not in carrier:
        return None
    given = {name: carrier.get(name, "") for name in MEMBERS}
    context = _W3C.extract(
        {name: value for name, value in given.items() if 0 < len(value) <= _LONGEST_STATE}, Context()
    )
    return context if trace.get_current_span(context).get_span_context().is_valid else None


def log_fields() -> dict[str, str]:
    """Return what a line of the log says of the current span, nothing where there is none."""
    span = trace.get_current_span().get_span_context()
    if not span.is_valid:
        return {}
    return {"trace_id": trace.format_trace_id(span.trace_id), "span_id": trace.format_span_id(span.span_id)}
