"""Spans by hand, and the trace that another process resumes with a run.

Automatic spans cost a millisecond a tool call, one of these some 25 microseconds.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from contextvars import Token
from types import TracebackType
from typing import TypeVar

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from beckon_contract.tracing import carried, continued, nobody_sees

Item = TypeVar("Item")
Value = str | int | float | bool | list[str]

_tracer = trace.get_tracer("beckon_agent")


def begun(name: str, kind: SpanKind, attributes: Mapping[str, Value]) -> Span:
    """Begin a span that is ended by hand; its parent is the current one."""
    if nobody_sees():
        return trace.get_current_span()
    return _tracer.start_span(name, None, kind, attributes)


class during:  # noqa: N801  # read as a statement: with during(…)
    """Let a span be the current one, below the current one or that of a context.

    A class, for it takes half the time of generators that hold each other. Not around the pieces of a
    generator, which may run in several tasks: see `within`.
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
        if self._parent is None and nobody_sees():
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
            failed(self._span, type(error).__name__)
        self._span.end()


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
    """Return the current trace as a member of a run's `request`, nothing where there is none."""
    return {_MEMBER: carried()[_MEMBER]} if _MEMBER in carried() else {}


@contextmanager
def resume_trace(request: Mapping[str, object]) -> Iterator[None]:
    """Let what begins inside belong to the trace in which the run of this `request` began."""
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
