"""Pairing the calls of a conversation with their results.

A stored conversation may hold a call without its result because the run was
interrupted, a result without its call because the beginning was cut off, arguments
that are no JSON, a name that the model made up, or an id given twice. Servers answer
all of these with 400, for this turn and every later one. So every conversation goes
through `paired` before every request; what is in order stays as it is, and what was
put in order once stays so.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from beckon_agent.model import wire
from beckon_agent.model.identifiers import derived_id, may_stay
from beckon_agent.model.types import Message
from beckon_contract.failures import Reason, failure

_ROLES = frozenset({"system", "user", "assistant", "tool"})
_SYNONYMS = {"developer": "system", "function": "tool"}
_OURS = frozenset({"role", "tool_calls", "tool_call_id", "function_call"})
_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64

NO_RESULT = wire.dumps(
    failure(
        Reason.TOOL_FAILED,
        "The run was interrupted before a result was recorded; the call may have had its effect.",
    )
)
"""What stands in for the result of a call that has none."""


def call_ids(messages: Iterable[Message]) -> frozenset[str]:
    """Return the ids of all calls in a conversation."""
    calls = (call for message in messages for call in _entries(message))
    return frozenset(wire.text(call.get("id")) for call in calls)


def paired(messages: Sequence[Message], *, signed_ids: bool = True) -> list[Message]:
    """Return the conversation in order: every call answered once, right after it, and nothing blank.

    Ids become unique and nine letters and digits; with `signed_ids` those that carry a
    provider's signature stay. What is paired already comes back as it is.
    """
    ids: set[str] = set()
    turns: list[_Turn] = []
    for message in messages:
        role = _role(message)
        if role == "tool":
            _answer(turns, message)
        else:
            turns.append(_turn(message, role, ids, signed_ids=signed_ids))
    kept: list[Message] = []
    for turn in turns:
        if turn.slots or not is_blank(turn.message.get("content")):
            kept.append(turn.message)
            kept.extend(slot.message() for slot in turn.slots)
    return kept


def is_blank(content: object) -> bool:
    """Whether a content says nothing."""
    return not content.strip() if isinstance(content, str) else not content


@dataclass(slots=True)
class _Slot:
    """A call's place for its result."""

    wire_id: str
    call_id: str
    result: str | None = None

    def message(self) -> Message:
        """Return the tool message, with a failure where no result came."""
        content = NO_RESULT if self.result is None else self.result
        return {"role": "tool", "tool_call_id": self.call_id, "content": content}


@dataclass(slots=True)
class _Turn:
    """A message that is no tool's, and the places for the results of its calls."""

    message: Message
    slots: list[_Slot] = field(default_factory=list)


def _turn(message: Message, role: str, ids: set[str], *, signed_ids: bool) -> _Turn:
    clean: Message = {
        key: wire.clean(value) for key, value in message.items() if key not in _OURS and value is not None
    }
    clean["role"] = role
    clean["content"] = _content(clean.get("content"), parts=role == "user")
    turn = _Turn(clean)
    if role != "assistant":
        return turn
    calls = []
    for entry in _entries(message):
        wire_id = wire.text(entry.get("id"))
        call = _call(entry)
        if call is None:
            continue
        stays = may_stay(wire_id, signed=signed_ids) and wire_id not in ids
        call_id = wire_id if stays else derived_id(f"{wire_id}:{len(ids)}", ids)
        ids.add(call_id)
        calls.append({**call, "id": call_id})
        turn.slots.append(_Slot(wire_id, call_id))
    if calls:
        clean["tool_calls"] = calls
    return turn


def _answer(turns: Sequence[_Turn], message: Message) -> None:
    """Put a result where its call is: the latest with this id that has none; else drop it."""
    wire_id = wire.text(message.get("tool_call_id"))
    for turn in reversed(turns):
        for slot in turn.slots:
            if slot.wire_id == wire_id and slot.result is None:
                slot.result = _joined(message.get("content"))
                return


def _role(message: Message) -> str:
    said = wire.text(message.get("role"))
    role = _SYNONYMS.get(said, said)
    if role in _ROLES:
        return role
    return "tool" if message.get("tool_call_id") else "user"


def _entries(message: Message) -> list[dict[str, object]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _call(entry: dict[str, object]) -> dict[str, object] | None:
    """Return a call that any server takes, `None` for one with neither name nor arguments."""
    function = wire.mapping(entry.get("function"))
    name, arguments = wire.text(function.get("name")).strip(), function.get("arguments")
    if not name and not arguments:
        return None
    extra = {
        key: value for key, value in entry.items() if key not in {"index", "function"} and value is not None
    }
    text = arguments if isinstance(arguments, str) else wire.dumps(arguments)
    return {
        **extra,
        "type": "function",
        "function": {
            "name": _NAME.sub("_", name)[:_LONGEST_NAME] or "unknown_tool",
            # vLLM and SGLang parse these and fail on all but an object (vllm#43995, sglang#28035).
            "arguments": text if wire.is_object(text) else "{}",
        },
    }


def _content(content: object, *, parts: bool) -> str | list[object]:
    """Return a content as a string, or as the parts it has where some are no text."""
    if (
        parts
        and isinstance(content, list)
        and any(wire.mapping(part).get("type") != "text" for part in content)
    ):
        return [part for part in content if isinstance(part, dict)]
    return _joined(content)


def _joined(content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return wire.text(content)
    if isinstance(content, list):
        pieces = (part if isinstance(part, str) else wire.mapping(part).get("text") for part in content)
        return "".join(map(wire.text, pieces))
    return wire.dumps(content)
