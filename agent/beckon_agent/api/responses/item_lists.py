"""Messages of a conversation as API items, in pages."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

from typing_extensions import TypedDict

from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.http.openapi import PageFields
from beckon_agent.api.responses import output
from beckon_agent.api.responses.content import input_parts
from beckon_agent.api.responses.output import FunctionCallItem, McpCallItem, MessageItem, ReasoningItem
from beckon_agent.core import json_values
from beckon_agent.core.model_types import Message

Order = Literal["asc", "desc"]


class InputMessageItem(TypedDict):
    """A message to the model."""

    id: str
    type: Literal["message"]
    status: Literal["completed"]
    role: Literal["user", "system", "developer"]
    content: list[dict[str, Any]]


class FunctionCallOutputItem(TypedDict):
    """The client's answer to a call."""

    id: str
    type: Literal["function_call_output"]
    status: Literal["completed"]
    call_id: str
    output: str


ConversationItem = (
    InputMessageItem | MessageItem | ReasoningItem | FunctionCallItem | FunctionCallOutputItem | McpCallItem
)
"""One item of a conversation."""


class ItemPage(PageFields):
    """One page of items."""

    data: list[ConversationItem]


_NextId = Callable[[str], str]


def to_items(messages: Sequence[Message], owner: str) -> list[ConversationItem]:
    """Return messages as items with stable, unique ids.

    The ids are made from `owner`, the id of the messages' run or conversation. A tool's message without a
    name answers a call that was handed to a client; see `items`.
    """
    answers = {json_values.as_text(message.get("tool_call_id")): message for message in _tools(messages)}
    found: list[ConversationItem] = []

    def next_id(kind: str) -> str:
        # Longer than the id of an output item: such an item may not be taken for one.
        return f"{kind}_{hashlib.sha256(f'{owner}.{len(found)}'.encode()).hexdigest()[:40]}"

    for message in messages:
        for item in _items(message, answers, next_id):
            found.append(item)  # noqa: PERF402  # the next id needs it
    return found


def item_page(items: Sequence[ConversationItem], *, after: str | None, limit: int, order: Order) -> ItemPage:
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


def _items(message: Message, answers: dict[str, Message], next_id: _NextId) -> Iterator[ConversationItem]:
    match message.get("role"):
        case "assistant":
            yield from _said(message, answers, next_id)
        case "tool":
            if not message.get("name"):
                yield {
                    "id": next_id("fco"),
                    "type": "function_call_output",
                    "status": "completed",
                    "call_id": json_values.as_text(message.get("tool_call_id")),
                    "output": json_values.as_text(message.get("content")),
                }
        case role:
            yield {
                "id": next_id("msg"),
                "type": "message",
                "status": "completed",
                "role": "system" if role == "system" else "developer" if role == "developer" else "user",
                "content": input_parts(message.get("content")),
            }


def _said(message: Message, answers: dict[str, Message], next_id: _NextId) -> Iterator[ConversationItem]:
    if thought := json_values.as_text(message.get("reasoning_content")):
        yield output.reasoning(next_id("rs"), thought, "completed")
    if said := json_values.as_text(message.get("content")):
        yield output.message(next_id("msg"), said, "completed")
    for call in json_values.as_sequence(message.get("tool_calls")):
        yield _call(json_values.as_mapping(call), answers, next_id)


def _call(call: Any, answers: dict[str, Message], next_id: _NextId) -> FunctionCallItem | McpCallItem:
    function = json_values.as_mapping(call.get("function"))
    call_id, name, arguments = (
        json_values.as_text(call.get("id")),
        json_values.as_text(function.get("name")),
        function.get("arguments"),
    )
    text = arguments if isinstance(arguments, str) else json_values.to_json(arguments)
    answer = answers.get(call_id, {})
    if not answer.get("name"):
        return output.function_call(next_id("fc"), call_id, name, text, "completed")
    content = json_values.as_text(answer.get("content"))
    return output.finished_call(output.mcp_call(next_id("mcp"), name, text), content, failed=False)
