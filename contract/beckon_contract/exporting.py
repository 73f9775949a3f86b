"""The OpenTelemetry SDK's provider for exporting spans.

It sends them to the collector named by the environment. This module loads the SDK, so it is imported only
where spans are exported.
"""

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased

from beckon_contract.wordless import Wordless


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


def provider(service: str, *, wordless: bool) -> TracerProvider:
    """Return a tracer provider configured by OpenTelemetry's variables; see `tracing.start`."""
    resource = Resource.create({"service.name": service, **OTELResourceDetector().detect().attributes})
    made = TracerProvider(resource=_OneResource(resource))
    exporter = Wordless(OTLPSpanExporter()) if wordless else OTLPSpanExporter()
    made.add_span_processor(BatchSpanProcessor(exporter))
    return made


def follows_parents(made: TracerProvider) -> bool:
    """Return True if spans follow the sampling decision of their parents.

    A trace that is not sampled at its beginning is then sampled nowhere.
    """
    return isinstance(made.sampler, ParentBased)
