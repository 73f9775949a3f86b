"""Spans of tool calls, and the content of messages, arguments and results in spans.

The shape of content is that of the GenAI conventions: `gen_ai.input.messages` and `gen_ai.output.messages`
are lists of messages, each a role with its parts.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry.trace import Span, SpanKind

from beckon_agent.core import json_values
from beckon_agent.core.model_types import Message, ToolCall, Turn
from beckon_agent.core.run_events import CallFinished
from beckon_agent.telemetry.spans import captures_content, during
from beckon_contract.failures import Reason
from beckon_contract.resources.tools import Tool
from beckon_runtime.tracing import carried, mark_failed

ANSWERED = "answered"

_REASONS = frozenset(reason.value for reason in Reason)


def outcome_label(call: CallFinished) -> str:
    """Return `answered` or the reason of the failure. A reason invented by a tool becomes `tool_failed`."""
    if not call.failed:
        return ANSWERED
    reason = failure_reason(call.result)
    return reason if reason in _REASONS else Reason.TOOL_FAILED.value


def failure_reason(result: object) -> str:
    """Return the reason in a failed result, or the empty string."""
    error = result.get("error") if isinstance(result, dict) else None
    reason = error.get("reason") if isinstance(error, dict) else None
    return reason if isinstance(reason, str) else ""


_LONGEST_TEXT = 8_000  # characters of one text
_MOST_MESSAGES = 50


def arguments_attribute(given: Mapping[str, object]) -> dict[str, str]:
    """Return the attribute with the arguments of a call."""
    return {"gen_ai.tool.call.arguments": _cut_text(_to_json(given))} if captures_content() else {}


def result_attribute(given: object) -> dict[str, str]:
    """Return the attribute with the result of a call."""
    return {"gen_ai.tool.call.result": _cut_text(_to_json(given))} if captures_content() else {}


def input_attribute(messages: Sequence[Message]) -> dict[str, str]:
    """Return the attribute with the last messages of the prompt."""
    if not captures_content():
        return {}
    return {
        "gen_ai.input.messages": _to_json([_to_message(message) for message in messages[-_MOST_MESSAGES:]])
    }


def output_attribute(turn: Turn) -> dict[str, str]:
    """Return the attribute with an answer of the model."""
    if not captures_content():
        return {}
    calls = [_to_call(call.id, call.name, call.arguments) for call in turn.calls]
    message = {
        "role": "assistant",
        "parts": [*_text_parts(turn.text or turn.details.refusal), *calls],
        "finish_reason": turn.finish_reason or "stop",
    }
    return {"gen_ai.output.messages": _to_json([message])}


def _to_message(message: Message) -> dict[str, Any]:
    role = str(message.get("role"))
    content = message.get("content")
    if role == "tool":
        answer = {
            "type": "tool_call_response",
            "id": message.get("tool_call_id"),
            "response": _text_of(content),
        }
        return {"role": role, "parts": [answer]}
    functions = [(call.get("id"), call.get("function") or {}) for call in message.get("tool_calls") or ()]
    calls = [_to_call(call, function.get("name"), function.get("arguments")) for call, function in functions]
    return {"role": role, "parts": [*_text_parts(content), *calls]}


def _to_call(call_id: object, name: object, written: object) -> dict[str, Any]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": _text_of(written)}


def _text_parts(content: object) -> list[dict[str, Any]]:
    """Return the parts of a message content.

    Of a part without text, such as an image, only the type is included.
    """
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    return [
        {"type": "text", "content": _text_of(part.get("text"))}
        if part.get("type") == "text"
        else {"type": str(part.get("type"))}
        for part in parts
        if isinstance(part, dict)
    ]


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return _cut_text(content)
    return "" if content is None else _cut_text(_to_json(content))


def _to_json(value: object) -> str:
    return json_values.to_json(value)


def _cut_text(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… ({len(text)} characters)"


_SHOWN_NAME = 80  # characters of a name that the model made up


class ToolSpan:
    """The span of one call."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def record_outcome(self, call: CallFinished) -> None:
        """Record the outcome of the call."""
        if self._span.is_recording():
            self._span.set_attributes(result_attribute(call.result))
            if call.failed:
                mark_failed(self._span, outcome_label(call))


@contextmanager
def trace_tool_call(
    call: ToolCall, arguments: Mapping[str, object], agent: str, *, known: bool
) -> Iterator[ToolSpan]:
    """Trace a tool call; its span name includes only a `known` tool."""
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name[:_SHOWN_NAME],
        "gen_ai.tool.call.id": call.id,
        "gen_ai.tool.type": "extension",
        "beckon.tool.call.origin": call.origin,
        "gen_ai.agent.name": agent,
    }
    name = f"execute_tool {call.name}" if known else "execute_tool"
    with during(name, SpanKind.INTERNAL, attributes) as span:
        if span.is_recording():
            span.set_attributes(arguments_attribute(arguments))
        yield ToolSpan(span)


def trace_members() -> dict[str, str]:
    """Return the trace members of an event; without a trace, new ones."""
    return carried() or {"traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"}


@contextmanager
def trace_event(event_id: str, source: str, tool: Tool) -> Iterator[None]:
    """Trace the event of a call from sending to reply. The event joins this span."""
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
