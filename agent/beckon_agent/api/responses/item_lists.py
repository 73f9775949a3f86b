"""Messages of a conversation as API items, in pages."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.responses import output
from beckon_agent.api.responses.content import input_parts
from beckon_agent.api.responses.output import Item
from beckon_agent.core import json_values
from beckon_agent.core.model_types import Message

Order = Literal["asc", "desc"]


def to_items(messages: Sequence[Message], owner: str) -> list[Item]:
    """Return messages as items with stable, unique ids.

    The ids are made from `owner`, the id of the messages' run or conversation. A tool's message without a
    name answers a call that was handed to a client; see `items`.
    """
    answers = {json_values.as_text(message.get("tool_call_id")): message for message in _tools(messages)}
    found: list[Item] = []
    for message in messages:
        for item in _items(message, answers):
            identity = f"{owner}.{len(found)}"
            kind = _PREFIXES[item["type"]]
            # An id of its own kind: such an item is nobody's output, and may not be taken for one.
            found.append({"id": f"{kind}_{hashlib.sha256(identity.encode()).hexdigest()[:40]}", **item})
    return found


_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "mcp_call": "mcp",
}


def item_page(items: Sequence[Item], *, after: str | None, limit: int, order: Order) -> dict[str, Any]:
    """Return one page of a list in the API's shape.

    Raises `ApiError` for an unknown `after`.
    """
    ordered = list(items) if order == "asc" else list(reversed(items))
    start = 0
    if after is not None:
        places = [index for index, item in enumerate(ordered) if item["id"] == after]
        if not places:
            message = f"after: there is no item {after[:80]!r} in this list"
            raise ApiError(400, message, code="invalid_request", param="after")
        start = places[0] + 1
    shown = ordered[start : start + limit]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0]["id"] if shown else "",
        "last_id": shown[-1]["id"] if shown else "",
        "has_more": start + limit < len(ordered),
    }


def _tools(messages: Sequence[Message]) -> Iterator[Message]:
    return (message for message in messages if message.get("role") == "tool")


def _items(message: Message, answers: dict[str, Message]) -> Iterator[Item]:
    match message.get("role"):
        case "assistant":
            yield from _said(message, answers)
        case "tool":
            if not message.get("name"):
                yield {
                    "type": "function_call_output",
                    "status": "completed",
                    "call_id": json_values.as_text(message.get("tool_call_id")),
                    "output": json_values.as_text(message.get("content")),
                }
        case role:
            yield {
                "type": "message",
                "status": "completed",
                "role": role if role in ("system", "developer") else "user",
                "content": input_parts(message.get("content")),
            }


def _said(message: Message, answers: dict[str, Message]) -> Iterator[Item]:
    if thought := json_values.as_text(message.get("reasoning_content")):
        yield _nameless(output.reasoning("", thought, "completed"))
    if said := json_values.as_text(message.get("content")):
        yield _nameless(output.message("", said, "completed"))
    for call in json_values.as_sequence(message.get("tool_calls")):
        yield _call(json_values.as_mapping(call), answers)


def _call(call: Any, answers: dict[str, Message]) -> Item:
    function = json_values.as_mapping(call.get("function"))
    call_id, name, arguments = (
        json_values.as_text(call.get("id")),
        json_values.as_text(function.get("name")),
        function.get("arguments"),
    )
    text = arguments if isinstance(arguments, str) else json_values.to_json(arguments)
    answer = answers.get(call_id, {})
    if not answer.get("name"):
        return _nameless(output.function_call("", call_id, name, text, "completed"))
    content = json_values.as_text(answer.get("content"))
    return _nameless(
        {**output.mcp_call("", name, text), **output.mcp_answer(content, failed=False)},
    )


def _nameless(item: Item) -> Item:
    return {key: value for key, value in item.items() if key != "id"}
