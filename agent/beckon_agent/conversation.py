"""What a turn adds to the conversation, and how a run ends with it."""

from collections.abc import Sequence

from beckon_agent.calling.prepared import Prepared
from beckon_agent.calling.results import for_model
from beckon_agent.model.types import BROKE_OFF, Message
from beckon_agent.runs import CallFinished, Ending

# The first is ours; OpenRouter and Zhipu use the others where the answer broke off behind them.
_FAULTS = frozenset({BROKE_OFF, "error", "network_error"})


def assistant_message(text: str, reasoning: str, calls: Sequence[Prepared]) -> Message:
    """Return the message of one answer of the model."""
    message: Message = {"role": "assistant", "content": text or (None if calls else "")}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = [call.as_message_part() for call in calls]
    return message


def result_message(finished: CallFinished, characters: int) -> Message:
    """Return the message that tells the model what came of a call, cut at so many characters."""
    content = for_model(finished.result, characters)
    return {"role": "tool", "tool_call_id": finished.id, "name": finished.name, "content": content}


def ending_of(finish_reason: str | None) -> Ending:
    """Return how a run ends with an answer; an unknown finish reason means that the model stopped."""
    if finish_reason in _FAULTS:
        return "incomplete"
    if finish_reason == "length":
        return "length"
    if finish_reason == "content_filter":
        return "content_filter"
    return "stop"
