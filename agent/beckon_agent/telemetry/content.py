"""What prompts, answers, arguments and results say: in spans only where a setting asks for it.

The setting, `VARIABLE`, and the shape are those of the GenAI conventions: `gen_ai.input.messages` and
`gen_ai.output.messages` are lists of messages, each a role with its parts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from beckon_agent.model import wire
from beckon_agent.model.types import Message, Turn

VARIABLE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

_YES = frozenset(("true", "span_only", "span_and_event"))
# We write no events, so `event_only` asks for nothing.
_NO = frozenset(("", "false", "no_content", "event_only"))
_LONGEST_TEXT = 8_000  # characters of one text
_MOST_MESSAGES = 50

_captured = False


def wanted(environment: Mapping[str, str]) -> bool:
    """Whether spans are to hold content; raise `ValueError` for a word that nobody knows."""
    word = environment.get(VARIABLE, "").strip().lower()
    if word not in _YES | _NO:
        raise ValueError(f"{VARIABLE}: use SPAN_ONLY, or leave it unset for spans without content")
    return word in _YES


def capture(*, enabled: bool) -> None:
    """Say for this process whether spans hold content."""
    global _captured  # noqa: PLW0603  # the tracer that it goes with is one for the process, too
    _captured = enabled


def captured() -> bool:
    """Whether spans hold content."""
    return _captured


def arguments(given: Mapping[str, object]) -> dict[str, str]:
    """Return the attribute with the arguments of a call."""
    return {"gen_ai.tool.call.arguments": _cut(_json(given))} if _captured else {}


def result(given: object) -> dict[str, str]:
    """Return the attribute with the result of a call."""
    return {"gen_ai.tool.call.result": _cut(_json(given))} if _captured else {}


def asked(messages: Sequence[Message]) -> dict[str, str]:
    """Return the attribute with the end of a conversation, as the model is asked it."""
    if not _captured:
        return {}
    return {"gen_ai.input.messages": _json([_message(message) for message in messages[-_MOST_MESSAGES:]])}


def answered(turn: Turn) -> dict[str, str]:
    """Return the attribute with an answer of the model."""
    if not _captured:
        return {}
    calls = [_call(call.id, call.name, call.arguments) for call in turn.calls]
    message = {
        "role": "assistant",
        "parts": [*_texts(turn.text), *calls],
        "finish_reason": turn.finish_reason or "stop",
    }
    return {"gen_ai.output.messages": _json([message])}


def _message(message: Message) -> dict[str, Any]:
    role = str(message.get("role"))
    content = message.get("content")
    if role == "tool":
        answer = {"type": "tool_call_response", "id": message.get("tool_call_id"), "response": _text(content)}
        return {"role": role, "parts": [answer]}
    functions = [(call.get("id"), call.get("function") or {}) for call in message.get("tool_calls") or ()]
    calls = [_call(call, function.get("name"), function.get("arguments")) for call, function in functions]
    return {"role": role, "parts": [*_texts(content), *calls]}


def _call(call_id: object, name: object, written: object) -> dict[str, Any]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": _text(written)}


def _texts(content: object) -> list[dict[str, Any]]:
    """Return the parts of a content; of what is no text, such as an image, only that it is there."""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    return [
        {"type": "text", "content": _text(part.get("text"))}
        if part.get("type") == "text"
        else {"type": str(part.get("type"))}
        for part in parts
        if isinstance(part, dict)
    ]


def _text(content: object) -> str:
    if isinstance(content, str):
        return _cut(content)
    return "" if content is None else _cut(_json(content))


def _json(value: object) -> str:
    return wire.dumps(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]}… ({len(text)} characters)"
