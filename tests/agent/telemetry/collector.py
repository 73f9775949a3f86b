"""A collector for the tests: takes OTLP over HTTP as a real one does, and keeps what came."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
FAILED = 2  # Status.STATUS_CODE_ERROR


@dataclass(frozen=True, slots=True)
class Received:
    """One span as it came over the wire; ids in hex, times in seconds."""

    service: str
    name: str
    kind: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    failed: bool
    begun: float
    ended: float


class Collector:
    """What came in, at `url`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[bytes] = []
        self.types: set[str] = set()

    @property
    def spans(self) -> list[Received]:
        """All spans so far, in the order in which they began."""
        found = [span for body in list(self.bodies) for span in _spans(body)]
        return sorted(found, key=lambda span: span.begun)

    def named(self, name: str) -> list[Received]:
        """The spans of this name."""
        return [span for span in self.spans if span.name == name]


@contextmanager
def collector() -> Iterator[Collector]:
    """Serve a collector on a free port of loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/v1/traces":
                running.types.add(self.headers["content-type"])
                running.bodies.append(body)
            self.send_response(200 if self.path == "/v1/traces" else 404)
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running = Collector(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield running
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def _spans(body: bytes) -> Iterator[Received]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _attributes(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Received(
                    service=service,
                    name=span.name,
                    kind=KINDS[span.kind],
                    trace=span.trace_id.hex(),
                    id=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    attributes=_attributes(span.attributes),
                    failed=span.status.code == FAILED,
                    begun=span.start_time_unix_nano / 1e9,
                    ended=span.end_time_unix_nano / 1e9,
                )


def _attributes(entries: Any) -> dict[str, Any]:
    return {entry.key: _value(entry.value) for entry in _keys(entries)}


def _keys(entries: Any) -> list[KeyValue]:
    return list(entries)


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(entry) for entry in value.array_value.values]
    return getattr(value, kind) if kind else None
