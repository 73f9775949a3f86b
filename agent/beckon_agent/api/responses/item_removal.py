"""Removal of one item from the messages of a conversation."""

from collections.abc import Sequence

from beckon_agent.api.responses.output import ConversationItem, number_items
from beckon_agent.core import json_values
from beckon_agent.core.model_types import CLAIMED, ITEM_NUMBERS, Message

_BLANK: Message = {"role": "assistant", "content": None}
"""A message without items, which is not sent to a model."""

_MARKS = ("role", CLAIMED)
_CALLS = ("function_call", "mcp_call")


def remove_item(messages: Sequence[Message], owner: str, item_id: str) -> list[Message] | None:
    """Return the messages without an item, `None` if they have no such item.

    The other items keep their ids. A call of a cluster's tool goes with its result. Where a call of a
    client's function or its result is left alone, `model.messages` repairs the conversation.
    """
    remaining: list[Message] = []
    answered: set[str] = set()
    is_found = False
    numbered = list(number_items(messages, owner))
    for entry in numbered:
        message, items, numbers = entry.message, entry.items, entry.numbers
        place = next((index for index, item in enumerate(items) if item["id"] == item_id), None)
        if place is not None:
            is_found = True
            answered |= _answer_of(message, items, place)
            message = _without(message, items, place)
            numbers = [*numbers[:place], *numbers[place + 1 :]]
            if message == _BLANK and entry is not numbered[-1]:
                continue  # the last one stays, blank: it has the number of the next item
        elif message.get("role") == "tool" and message.get("name") and _call_id(message) in answered:
            continue
        remaining.append({**message, ITEM_NUMBERS: numbers})
    return remaining if is_found else None


def _without(message: Message, items: Sequence[ConversationItem], place: int) -> Message:
    """Return a message without one of its items: blank, if it has no other."""
    kind = items[place]["type"]
    if message.get("role") != "assistant":
        return _BLANK
    changed = {key: value for key, value in message.items() if key != ITEM_NUMBERS}
    if kind in _CALLS:
        calls = list(json_values.as_sequence(message.get("tool_calls")))
        del calls[_call_index(items, place)]
        changed["tool_calls"] = calls
        if not calls:
            del changed["tool_calls"]
    elif kind == "reasoning":
        del changed["reasoning_content"]
    elif json_values.as_text(message.get("content")) and _is_first_text(items, place):
        changed["content"] = None
        changed.pop("annotations", None)
    else:
        del changed["refusal"]
    return changed if any(value for key, value in changed.items() if key not in _MARKS) else _BLANK


def _answer_of(message: Message, items: Sequence[ConversationItem], place: int) -> set[str]:
    """Return the id of a cluster tool's call, whose result goes with it; no other item has one."""
    if items[place]["type"] != "mcp_call":
        return set()
    calls = json_values.as_sequence(message.get("tool_calls"))
    call = json_values.as_mapping(calls[_call_index(items, place)])
    return {json_values.as_text(call.get("id"))}


def _call_index(items: Sequence[ConversationItem], place: int) -> int:
    return sum(1 for item in items[:place] if item["type"] in _CALLS)


def _is_first_text(items: Sequence[ConversationItem], place: int) -> bool:
    return not any(item["type"] == "message" for item in items[:place])


def _call_id(message: Message) -> str:
    return json_values.as_text(message.get("tool_call_id"))
