"""Making any conversation valid for the server that it is sent to.

One bad turn must never spoil a conversation: whatever is stored, `repair` makes of it
what the strictest server accepts, and leaves alone what is in order. First the calls
are paired with their results; then the rest is fitted to the profile of the server.
"""

from collections.abc import Iterable, Sequence

from beckon_agent.model import wire
from beckon_agent.model.pairing import is_blank, paired
from beckon_agent.model.profiles import Profile
from beckon_agent.model.types import Message

_PLAIN = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})
_PLAIN_CALL = frozenset({"id", "type", "function"})
_REASONING = ("reasoning_content", "reasoning")
_BRIDGE = "Understood."
"""What the assistant says between a result and a user who speaks at once."""


def repair(messages: Sequence[Message], profile: Profile) -> list[Message]:
    """Return a conversation that this profile's server accepts, whatever was stored.

    Repairing a repaired conversation changes nothing.
    """
    ordered = paired(messages, signed_ids=not profile.nine_char_ids)
    fitted = [_fitted(message, profile) for message in ordered]
    instructed = _with_instructions(fitted, profile)
    if profile.assistant_after_tool:
        instructed = list(_bridged(instructed))
    return _alternating(instructed)


def _fitted(message: Message, profile: Profile) -> Message:
    kept = {
        key: value
        for key, value in message.items()
        if key in _PLAIN or (profile.replay_extra and key not in _REASONING)
    }
    if profile.string_content and not isinstance(kept["content"], str):
        kept["content"] = _text(kept["content"])
    calls = message.get("tool_calls")
    if not calls:
        return kept
    kept["tool_calls"] = [call if profile.replay_extra else _plain(call) for call in calls]
    if is_blank(kept["content"]):
        kept["content"] = "" if profile.string_content else None
    # DeepSeek takes reasoning back with calls only, and then demands it (hermes-agent#15228).
    reasoning = wire.first_text(message, *_REASONING)
    if profile.reasoning_replay and (reasoning or profile.reasoning_required):
        kept[profile.reasoning_replay] = reasoning
    return kept


def _plain(call: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in call.items() if key in _PLAIN_CALL}


def _with_instructions(messages: Sequence[Message], profile: Profile) -> list[Message]:
    """Put the system messages where, and under the role, that the server takes them."""
    if not profile.single_system and profile.system_role == "system":
        return list(messages)
    system = [message for message in messages if message["role"] == "system"]
    if not system:
        return list(messages)
    said = "\n\n".join(message["content"] for message in system)
    rest = [message for message in messages if message["role"] != "system"]
    return [{"role": profile.system_role, "content": said}, *rest]


def _bridged(messages: Iterable[Message]) -> Iterable[Message]:
    """Let the assistant speak between a tool and a user (Mistral, code 3230)."""
    before = None
    for message in messages:
        if before == "tool" and message["role"] == "user":
            yield {"role": "assistant", "content": _BRIDGE}
        before = message["role"]
        yield message


def _alternating(messages: Iterable[Message]) -> list[Message]:
    """Join what one side said in several messages: many chat templates demand turns.

    Two user messages in a row are what a failed turn leaves behind.
    """
    joined: list[Message] = []
    for message in messages:
        before = joined[-1] if joined else None
        if before is None or not _is_joinable(before, message):
            joined.append(message)
        elif is_blank(message["content"]):
            joined[-1] = {**message, "content": before["content"]}
        else:
            joined[-1] = {**message, "content": _concatenated(before["content"], message["content"])}
    return joined


def _is_joinable(before: Message, message: Message) -> bool:
    if before["role"] != message["role"] or before.keys() != {"role", "content"}:
        return False
    if message["role"] == "user":
        return message.keys() == {"role", "content"}
    return bool(message["role"] == "assistant")


def _concatenated(first: object, second: object) -> object:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_parts(first), *_parts(second)]


def _parts(content: object) -> list[object]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}]


def _text(content: object) -> str:
    """Return the texts of content parts, and a word for each part that is none."""
    texts = []
    for part in content if isinstance(content, list) else []:
        member = wire.mapping(part)
        texts.append(
            wire.text(member.get("text")) or f"[{wire.text(member.get('type')) or 'attachment'} left out]"
        )
    return "\n".join(texts)
