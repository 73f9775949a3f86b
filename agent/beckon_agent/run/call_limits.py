"""Limits on the calls of one run: calls of a turn, and repeated calls."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beckon_agent.core import json_values
from beckon_agent.core.model_types import Message
from beckon_agent.core.run_types import Limits
from beckon_agent.tool_calls.outcome import is_failure
from beckon_agent.tool_calls.validation import NeedsApproval, PreparedCall
from beckon_contract.failures import Reason
from beckon_contract.tools import Tool

_Call = tuple[str, str]


@dataclass(slots=True)
class _Repetition:
    """The repetitions of a call without a new result.

    `result` is its last one.
    """

    times: int = 0
    result: str | None = None


def limit_calls(
    calls: Sequence[PreparedCall], added: Sequence[Message], limits: Limits
) -> list[PreparedCall]:
    """Refuse the calls of a turn above the limits.

    `added` are the messages added by the run before these calls. Calls made by the client itself, or refused
    already, are not counted.
    """
    repeated = _count_repetitions(added)
    made = 0
    found: list[PreparedCall] = []
    for call in calls:
        if not isinstance(call.action, Tool | NeedsApproval):
            found.append(call)
            continue
        made += 1
        times = repeated.get(_call_identity(call.tool_call.name, call.arguments), 0)
        if made > limits.calls_per_turn:
            message = (
                f"not called: one turn makes at most {limits.calls_per_turn} calls; "
                "work with the results of these, or make fewer calls with more in each"
            )
            found.append(call.refused(Reason.DENIED, message))
        elif times >= limits.repeated_calls:
            message = (
                f"not called: {call.tool_call.name} was called {times} times with these same arguments, and "
                "brought nothing new; use other arguments or another tool, or answer with what you have"
            )
            found.append(call.refused(Reason.DENIED, message))
        else:
            found.append(call)
    return found


def _count_repetitions(added: Sequence[Message]) -> dict[_Call, int]:
    """Return how often in a row each call failed or repeated its result.

    The count goes up to the last message.
    """
    found: dict[_Call, _Repetition] = {}
    by_id: dict[str, _Call] = {}
    for message in added:
        if message.get("role") == "assistant":  # the ids are those of one turn: models use them again
            by_id = {call["id"]: _identity_of(call) for call in message.get("tool_calls") or ()}
        elif message.get("role") == "tool" and (call := by_id.get(message["tool_call_id"])) is not None:
            _count_result(found.setdefault(call, _Repetition()), message["content"])
    return {call: repetition.times for call, repetition in found.items()}


def _count_result(repetition: _Repetition, result: str) -> None:
    if _is_failure(result) or result == repetition.result:
        repetition.times += 1
    else:
        repetition.times, repetition.result = 1, result


def _is_failure(result: str) -> bool:
    """True if a result, as sent to the model, is a failure.

    A result that was cut is long, and so no failure.
    """
    if not result.startswith('{"error"'):
        return False
    try:
        return is_failure(json.loads(result))
    except ValueError:
        return False


def _identity_of(call: Mapping[str, Any]) -> _Call:
    function = call["function"]
    return _call_identity(function["name"], json_values.as_mapping(json.loads(function["arguments"])))


def _call_identity(name: str, arguments: Mapping[str, object]) -> _Call:
    """Return a call's name and its arguments as sorted JSON.

    Two equal calls have the same identity, whatever the order of their arguments.
    """
    return name, json.dumps(arguments, sort_keys=True)
