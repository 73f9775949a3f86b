"""Starting and ending telemetry, and the fields of log lines."""

import os
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from contextvars import Token
from types import TracebackType
from typing import TypeVar

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from beckon_agent.core.context import request_id
from beckon_agent.telemetry import tool_spans
from beckon_runtime import tracing
from beckon_runtime.tracing import carried, continued, is_unrecorded


def start_telemetry(environment: Mapping[str, str] = os.environ) -> Callable[[], None]:
    """Export spans to the collector named in the environment.

    Returns a function to export the last spans and stop. Nothing is exported without a collector. Raises
    `ValueError` for an OpenTelemetry variable with an unusable value.
    """
    tool_spans.capture_content(enabled=tool_spans.is_content_wanted(environment))
    return tracing.start("beckon-agent", environment, redacted=True)


def log_fields() -> dict[str, str]:
    """Return the trace and request fields of a log line."""
    request = request_id()
    return tracing.log_fields() | ({} if request == "-" else {"request_id": request})


Item = TypeVar("Item")
Value = str | int | float | bool | list[str]

_tracer = trace.get_tracer("beckon_agent")


def begin_span(name: str, kind: SpanKind, attributes: Mapping[str, Value]) -> Span:
    """Begin a span below the current one; the caller ends it."""
    if is_unrecorded():
        return trace.get_current_span()
    return _tracer.start_span(name, None, kind, attributes)


class during:  # noqa: N801  # read as a statement: with during(…)
    """Make a new span the current one for a block.

    Its parent is the current span, or the span of a given context. This is a class because it takes half the
    time of nested generators. Do not use it around the items of a generator, which may run in several tasks:
    see `within`.
    """

    __slots__ = ("_attributes", "_kind", "_name", "_parent", "_span", "_token")

    def __init__(
        self, name: str, kind: SpanKind, attributes: Mapping[str, Value], parent: Context | None = None
    ) -> None:
        self._name = name
        self._kind = kind
        self._attributes = attributes
        self._parent = parent
        self._token: Token[Context] | None = None

    def __enter__(self) -> Span:
        if self._parent is None and is_unrecorded():
            self._span = trace.get_current_span()
            return self._span
        self._span = _tracer.start_span(self._name, self._parent, self._kind, self._attributes)
        self._token = attach(trace.set_span_in_context(self._span, self._parent))
        return self._span

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if self._token is None:
            return
        detach(self._token)
        if isinstance(error, Exception):
            mark_failed(self._span, type(error).__name__)
        self._span.end()


def mark_failed(span: Span, error_type: str) -> None:
    """Mark a span as failed with an error type.

    The text of the error is left out, because it may hold private data.
    """
    span.set_attribute("error.type", error_type)
    span.set_status(Status(StatusCode.ERROR))


async def iterate_within(span: Span, items: AsyncGenerator[Item]) -> AsyncGenerator[Item]:
    """Yield the items; the span is current only while each is awaited.

    The consumer may take each item in another task, and does not work under this span.
    """
    same = span.get_span_context() == trace.get_current_span().get_span_context()
    async with aclosing(items):
        if same:  # nothing is traced, or not here
            async for item in items:
                yield item
            return
        here = trace.set_span_in_context(span)
        while True:
            token = attach(here)
            try:
                item = await anext(items)
            except StopAsyncIteration:
                return
            finally:
                detach(token)
            yield item


_MEMBER = "traceparent"


def trace_to_request() -> dict[str, object]:
    """Return the current trace as a member of a run's `request`.

    Without a trace the result is empty.
    """
    return {_MEMBER: carried()[_MEMBER]} if _MEMBER in carried() else {}


@contextmanager
def resume_trace(request: Mapping[str, object]) -> Iterator[None]:
    """Continue the trace stored in a run's `request` inside the block."""
    noted = request.get(_MEMBER)
    context = continued({_MEMBER: noted}) if isinstance(noted, str) else None
    if context is None:
        yield
        return
    token = attach(context)
    try:
        yield
    finally:
        detach(token)
