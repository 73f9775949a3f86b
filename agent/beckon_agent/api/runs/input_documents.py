"""The documents of input that tools request of a person."""

from typing import Any, Literal

from typing_extensions import TypedDict

from beckon_agent.api.responses.forms import input_id
from beckon_agent.core.records import StoredCall, Waiting
from beckon_agent.tool_calls.recorded_events import shown_document


class InputState(TypedDict):
    """The input that a tool has requested last; `id` is `None` once it has its answer, the `action`."""

    id: str | None
    message: str
    schema: dict[str, Any]
    action: str | None


class WaitingInput(TypedDict):
    """A call whose tool waits for input of a person. `schema` is a JSON Schema of one flat object."""

    id: str
    object: Literal["input_request"]
    run: str
    agent: str
    question: str
    name: str
    message: str
    schema: dict[str, Any]


class AnsweredInput(TypedDict):
    """An answer to an input request."""

    id: str
    object: Literal["input_request"]
    run: str
    action: str


def input_state(call: StoredCall) -> InputState | None:
    """Return the input requested by the tool of a call, `None` if it has requested none."""
    if call.input_request is None:
        return None
    shown: dict[str, Any] = shown_document(call.input_request)
    action = None if call.input_answer is None or call.state == "input" else call.input_answer["action"]
    return {
        "id": input_id(call.event_id) if call.state == "input" else None,
        "message": shown["message"],
        "schema": shown["schema"],
        "action": action,
    }


def waiting_input(waiting: Waiting) -> WaitingInput:
    """Return a call whose tool waits for input."""
    shown: dict[str, Any] = shown_document(waiting.call.input_request)
    return {
        "id": input_id(waiting.call.event_id),
        "object": "input_request",
        "run": waiting.run_id,
        "agent": waiting.agent,
        "question": waiting.question,
        "name": waiting.call.name,
        "message": shown["message"],
        "schema": shown["schema"],
    }
