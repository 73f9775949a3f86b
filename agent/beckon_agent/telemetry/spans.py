"""Spans by hand: automatic ones cost a millisecond a tool call, one of these some 25 microseconds."""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import TypeVar

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

Item = TypeVar("Item")
Value = str | int | float | bool | list[str]

_tracer = trace.get_tracer("beckon_agent")


def begun(name: str, kind: SpanKind, attributes: Mapping[str, Value]) -> Span:
    """Begin a span that is ended by hand; its parent is the current one."""
    if _off():
        return trace.get_current_span()
    return _tracer.start_span(name, None, kind, attributes)


@contextmanager
def during(
    name: str, kind: SpanKind, attributes: Mapping[str, Value], parent: Context | None = None
) -> Iterator[Span]:
    """Let a span be the current one, below the current one or that of a context.

    Not for generators, whose pieces may run in several tasks: see `within`.
    """
    if parent is None and _off():
        yield trace.get_current_span()
        return
    with _tracer.start_as_current_span(
        name, parent, kind, attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except Exception as error:
            failed(span, type(error).__name__)
            raise


def _off() -> bool:
    """Whether nobody has asked for spans: even those that do nothing cost 4 microseconds each."""
    return isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def failed(span: Span, error_type: str) -> None:
    """Mark a span as failed; the text of an error may hold what is nobody else's business."""
    span.set_attribute("error.type", error_type)
    span.set_status(Status(StatusCode.ERROR))


async def within(span: Span, items: AsyncGenerator[Item]) -> AsyncGenerator[Item]:
    """Yield the items; a span is current while each is awaited, and only then.

    Who takes the items may do so in another task each time, and does not work under this span.
    """
    same = span.get_span_context() == trace.get_current_span().get_span_context()
    async with aclosing(items):
        if same:  # nothing is traced, or not here
            async for item in items:
                yield item
            return
        while True:
            token = attach(trace.set_span_in_context(span))
            try:
                item = await anext(items)
            except StopAsyncIteration:
                return
            finally:
                detach(token)
            yield item
