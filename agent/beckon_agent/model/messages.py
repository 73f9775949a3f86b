"""Repair of a conversation for the strictest server.

One bad turn must never spoil a conversation. First `pair_calls` pairs calls with their results: a stored
conversation may hold a call without its result because the run was interrupted, a result without its call
because the beginning was cut off, arguments that are no JSON, a name that the model made up, or an id given
twice. Servers answer all of these with 400, for this turn and every later one. Then `repair_messages` fits
the rest to the profile of the server. Both leave alone what is in order, and what they changed once stays so.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from beckon_agent.core import json_values
from beckon_agent.core.model_types import CLAIMED, ITEM_NUMBERS, Message, derived_id, may_stay
from beckon_agent.model.capabilities import Profile
from beckon_contract.failures import Reason, failure

_ROLES = frozenset({"system", "user", "assistant", "tool"})
_SYNONYMS = {"developer": "system", "function": "tool"}
_OURS = frozenset(
    {"role", "tool_calls", "tool_call_id", "function_call", "annotations", CLAIMED, ITEM_NUMBERS}
)
_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME = 64

NO_RESULT = json_values.to_json(
    failure(
        Reason.TOOL_FAILED,
        "The run was interrupted before a result was recorded; the call may have had its effect.",
    )
)
"""The text in place of the result of a call that has none."""


def call_ids(messages: Iterable[Message]) -> frozenset[str]:
    """Return the ids of all calls in a conversation."""
    calls = (call for message in messages for call in _call_entries(message))
    return frozenset(json_values.as_text(call.get("id")) for call in calls)


def pair_calls(messages: Sequence[Message], *, signed_ids: bool = True) -> list[Message]:
    """Return the conversation with each call answered once, right after it.

    Blank messages are left out. Ids become unique and nine letters and digits; with `signed_ids`, those with
    a provider's signature stay. A conversation in that order comes back as it is.
    """
    ids: set[str] = set()
    turns: list[_TurnSlots] = []
    for message in messages:
        role = _role_of(message)
        if role == "tool":
            _fill_slot(turns, message)
        else:
            turns.append(_open_slots(message, role, ids, signed_ids=signed_ids))
    paired: list[Message] = []
    for turn in turns:
        if turn.slots or not is_blank(turn.message.get("content")):
            paired.append(turn.message)
            paired.extend(slot.to_message() for slot in turn.slots)
    return paired


def is_blank(content: object) -> bool:
    """True if a content is empty or blank."""
    return not content.strip() if isinstance(content, str) else not content


@dataclass(slots=True)
class _Slot:
    """A call's place for its result."""

    wire_id: str
    call_id: str
    result: str | None = None

    def to_message(self) -> Message:
        """Return the tool message, with a failure for a missing result."""
        content = NO_RESULT if self.result is None else self.result
        return {"role": "tool", "tool_call_id": self.call_id, "content": content}


@dataclass(slots=True)
class _TurnSlots:
    """A message other than a tool's, with places for its calls' results."""

    message: Message
    slots: list[_Slot] = field(default_factory=list)


def _open_slots(message: Message, role: str, ids: set[str], *, signed_ids: bool) -> _TurnSlots:
    clean: Message = {
        key: json_values.clean_strings(value)
        for key, value in message.items()
        if key not in _OURS and value is not None
    }
    clean["role"] = role
    clean["content"] = _normalise_content(clean.get("content"), parts=role == "user")
    turn = _TurnSlots(clean)
    if role != "assistant":
        return turn
    if refusal := json_values.as_text(clean.pop("refusal", None)):  # few servers take it back as such
        content = clean["content"]
        clean["content"] = refusal if is_blank(content) else _join_contents(content, refusal)
    calls = []
    for entry in _call_entries(message):
        wire_id = json_values.as_text(entry.get("id"))
        call = _normalise_call(entry)
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


def _fill_slot(turns: Sequence[_TurnSlots], message: Message) -> None:
    """Put a result into the place of its call, or drop it.

    Its call is the latest with this id and without a result.
    """
    wire_id = json_values.as_text(message.get("tool_call_id"))
    for turn in reversed(turns):
        for slot in turn.slots:
            if slot.wire_id == wire_id and slot.result is None:
                slot.result = _join_texts(message.get("content"))
                return


def _role_of(message: Message) -> str:
    name = json_values.as_text(message.get("role"))
    role = _SYNONYMS.get(name, name)
    if role in _ROLES:
        return role
    return "tool" if message.get("tool_call_id") else "user"


def _call_entries(message: Message) -> list[dict[str, object]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def _normalise_call(entry: dict[str, object]) -> dict[str, object] | None:
    """Return a call in a form for any server. `None` for a call with neither name nor arguments."""
    function = json_values.as_mapping(entry.get("function"))
    name, arguments = json_values.as_text(function.get("name")).strip(), function.get("arguments")
    if not name and not arguments:
        return None
    extra = {
        key: value for key, value in entry.items() if key not in {"index", "function"} and value is not None
    }
    text = arguments if isinstance(arguments, str) else json_values.to_json(arguments)
    return {
        **extra,
        "type": "function",
        "function": {
            "name": _NAME.sub("_", name)[:_LONGEST_NAME] or "unknown_tool",
            # vLLM and SGLang parse these and fail on all but an object (vllm#43995, sglang#28035).
            "arguments": text if json_values.is_object(text) else "{}",
        },
    }


def _normalise_content(content: object, *, parts: bool) -> str | list[object]:
    """Return a content as a string, or as its parts.

    Parts stay if `parts` is set and some of them are no text.
    """
    if (
        parts
        and isinstance(content, list)
        and any(json_values.as_mapping(part).get("type") != "text" for part in content)
    ):
        return [part for part in content if isinstance(part, dict)]
    return _join_texts(content)


def _join_texts(content: object) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return json_values.as_text(content)
    if isinstance(content, list):
        pieces = (
            part if isinstance(part, str) else json_values.as_mapping(part).get("text") for part in content
        )
        return "".join(map(json_values.as_text, pieces))
    return json_values.to_json(content)


_PLAIN = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
_PLAIN_CALL = frozenset({"id", "type", "function"})
_REASONING = ("reasoning_content", "reasoning")
_BRIDGE = "Understood."
"""What the assistant says between a result and a user who speaks at once."""


def repair_messages(messages: Sequence[Message], profile: Profile) -> list[Message]:
    """Return a conversation in a form accepted by the profile's server.

    Anything stored can be repaired. Repairing a repaired conversation changes nothing.
    """
    ordered = pair_calls(messages, signed_ids=not profile.nine_char_ids)
    fitted = [_fit_message(message, profile) for message in ordered]
    instructed = _with_instructions(fitted, profile)
    if profile.assistant_after_tool:
        instructed = list(_bridge_roles(instructed))
    return _join_same_roles(instructed)


def _fit_message(message: Message, profile: Profile) -> Message:
    document = {
        key: value
        for key, value in message.items()
        if key in _PLAIN or (profile.replay_extra and key not in _REASONING)
    }
    if profile.string_content and not isinstance(document["content"], str):
        document["content"] = _text_of(document["content"])
    calls = message.get("tool_calls")
    if not calls:
        return document
    document["tool_calls"] = [call if profile.replay_extra else _drop_extras(call) for call in calls]
    if is_blank(document["content"]):
        document["content"] = "" if profile.string_content else None
    # DeepSeek takes reasoning back with calls only, and then demands it (hermes-agent#15228).
    reasoning = json_values.first_text(message, *_REASONING)
    if profile.reasoning_replay and (reasoning or profile.reasoning_required):
        document[profile.reasoning_replay] = reasoning
    return document


def _drop_extras(call: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in call.items() if key in _PLAIN_CALL}


def _with_instructions(messages: Sequence[Message], profile: Profile) -> list[Message]:
    """Join the system messages in front, under the server's role for them.

    A server that takes several of them anywhere, as `system`, gets them unchanged.
    """
    if not profile.single_system and profile.system_role == "system":
        return list(messages)
    system = [message for message in messages if message["role"] == "system"]
    if not system:
        return list(messages)
    content = "\n\n".join(message["content"] for message in system)
    rest = [message for message in messages if message["role"] != "system"]
    return [{"role": profile.system_role, "content": content}, *rest]


def _bridge_roles(messages: Iterable[Message]) -> Iterable[Message]:
    """Let the assistant speak between a tool and a user (Mistral, code 3230)."""
    before = None
    for message in messages:
        if before == "tool" and message["role"] == "user":
            yield {"role": "assistant", "content": _BRIDGE}
        before = message["role"]
        yield message


def _join_same_roles(messages: Iterable[Message]) -> list[Message]:
    """Join successive messages of one side.

    Many chat templates demand turns. Two user messages in a row are left behind by a failed turn.
    """
    joined: list[Message] = []
    for message in messages:
        before = joined[-1] if joined else None
        if before is None or not _is_joinable(before, message):
            joined.append(message)
        elif is_blank(message["content"]):
            joined[-1] = {**message, "content": before["content"]}
        else:
            joined[-1] = {**message, "content": _join_contents(before["content"], message["content"])}
    return joined


def _is_joinable(before: Message, message: Message) -> bool:
    if before["role"] != message["role"] or before.keys() != {"role", "content"}:
        return False
    if message["role"] == "user":
        return message.keys() == {"role", "content"}
    return bool(message["role"] == "assistant")


def _join_contents(first: object, second: object) -> object:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_content_parts(first), *_content_parts(second)]


def _content_parts(content: object) -> list[object]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}]


def _text_of(content: object) -> str:
    """Return the texts of content parts, and a note for each other part."""
    texts = []
    for part in content if isinstance(content, list) else []:
        member = json_values.as_mapping(part)
        texts.append(
            json_values.as_text(member.get("text"))
            or f"[{json_values.as_text(member.get('type')) or 'attachment'} left out]"
        )
    return "\n".join(texts)
