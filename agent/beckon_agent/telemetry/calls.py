"""The spans of a tool call: `execute_tool`, and below it the event that is sent for it."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from opentelemetry.trace import Span, SpanKind

from beckon_agent.model.types import ToolCall
from beckon_agent.runs import CallFinished
from beckon_agent.telemetry import content
from beckon_agent.telemetry.outcomes import outcome
from beckon_agent.telemetry.spans import during, failed
from beckon_contract.tools import Tool
from beckon_contract.tracing import carried

_SHOWN_NAME = 80  # characters of a name that the model made up


class ToolSpan:
    """The span of one call."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def finished(self, call: CallFinished) -> None:
        """Say what came of it."""
        if self._span.is_recording():
            self._span.set_attributes(content.result(call.result))
            if call.failed:
                failed(self._span, outcome(call))


@contextmanager
def execute_tool(
    asked: ToolCall, arguments: Mapping[str, object], agent: str, *, known: bool
) -> Iterator[ToolSpan]:
    """Trace a call of a tool; the name of the span has the tool's only where it is `known`."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": asked.name[:_SHOWN_NAME],
        "gen_ai.tool.call.id": asked.id,
        "gen_ai.tool.type": "extension",
        "beckon.tool.call.origin": asked.origin,
        "gen_ai.agent.name": agent,
    }
    name = f"execute_tool {asked.name}" if known else "execute_tool"
    with during(name, SpanKind.INTERNAL, attributes) as span:
        if span.is_recording():
            span.set_attributes(content.arguments(arguments))
        yield ToolSpan(span)


def joined() -> dict[str, str]:
    """Return the members by which an event joins the trace; one that nobody traces begins its own."""
    return carried() or {"traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"}


@contextmanager
def sent_event(event_id: str, source: str, tool: Tool) -> Iterator[None]:
    """Trace the event of a call, from its sending to its reply; the event joins this span."""
    attributes = {
        "cloudevents.event_id": event_id,
        "cloudevents.event_source": source,
        "cloudevents.event_spec_version": "1.0",
        "cloudevents.event_type": tool.type,
        "messaging.system": "cloudevents",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": f"{tool.namespace}/{tool.broker}",
    }
    with during(f"send {tool.type}", SpanKind.PRODUCER, attributes):
        yield
