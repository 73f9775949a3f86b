"""The items that the API writes: of a response, of a conversation."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.http.openapi import PageFields
from beckon_agent.api.responses.content import input_parts
from beckon_agent.api.responses.forms import input_id
from beckon_agent.api.responses.text_parts import (
    ContentPart,
    OutputText,
    ReasoningText,
    RefusalContent,
    TextKind,
    write_part,
)
from beckon_agent.core import json_values
from beckon_agent.core.model_types import ITEM_NUMBERS, Message
from beckon_agent.core.run_events import InputRequested
from beckon_agent.model.answer_details import read_citations
from beckon_agent.tool_calls.recorded_events import shown_document
from beckon_contract.resources.tools import CallOrigin

Item = dict[str, Any]
"""One item of an input, before it is validated."""

Progress = Literal["in_progress", "completed", "incomplete"]

SERVER_LABEL = "cluster"
"""The one server whose tools the agent calls itself."""


class MessageItem(TypedDict):
    """A message of the model."""

    id: str
    type: Literal["message"]
    status: Progress
    role: Literal["assistant"]
    content: list[OutputText | RefusalContent]


class ReasoningItem(TypedDict):
    """Reasoning of the model."""

    id: str
    type: Literal["reasoning"]
    status: Progress
    summary: list[Any]
    content: list[ReasoningText]


class FunctionCallItem(TypedDict):
    """A call of a client tool, answered by the client."""

    id: str
    type: Literal["function_call"]
    status: Progress
    call_id: str
    name: str
    arguments: str


_Origin = TypedDict("_Origin", {"beckon:origin": NotRequired[CallOrigin]})
"""The extension of a call read from text; calls from the server's `tool_calls` have none."""


class McpCallError(TypedDict):
    """The error object of a failed call."""

    type: Literal["mcp_tool_execution_error"]
    content: Any


class McpCallItem(_Origin):
    """A call of a cluster tool, made by the agent."""

    id: str
    type: Literal["mcp_call", "beckon:tool_call"]
    status: Progress | Literal["failed"]
    server_label: str
    name: str
    arguments: str
    approval_request_id: str | None
    output: str | None
    error: McpCallError | None


class ApprovalRequestItem(_Origin):
    """The approval request for a call."""

    id: str
    type: Literal["mcp_approval_request", "beckon:approval_request"]
    status: Literal["completed"]
    server_label: str
    name: str
    arguments: str


OutputItem = MessageItem | ReasoningItem | FunctionCallItem | McpCallItem | ApprovalRequestItem
"""One item of a response's output."""


def write_text_item(
    kind: TextKind, item_id: str, part: ContentPart | None, status: Progress
) -> MessageItem | ReasoningItem:
    """Return a message or reasoning item. `part` is `None` if it has only begun."""
    content: list[Any] = [] if part is None else [part]
    if kind == "reasoning":
        return {"id": item_id, "type": "reasoning", "status": status, "summary": [], "content": content}
    return {"id": item_id, "type": "message", "status": status, "role": "assistant", "content": content}


def write_function_call(
    item_id: str, call_id: str, name: str, arguments: str, status: Progress
) -> FunctionCallItem:
    """Return a call of a client tool."""
    return {
        "id": item_id,
        "type": "function_call",
        "status": status,
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def write_mcp_call(
    item_id: str, name: str, arguments: str, approval: str | None = None, origin: CallOrigin = "api"
) -> McpCallItem:
    """Return a running call of a cluster tool. `approval` is the id of the request for approval before it."""
    return {
        "id": item_id,
        "type": "mcp_call",
        "status": "in_progress",
        "server_label": SERVER_LABEL,
        "name": name,
        "arguments": arguments,
        "approval_request_id": approval,
        "output": None,
        "error": None,
        **_from_text(origin),
    }


def finish_mcp_call(call: McpCallItem, result: object, *, failed: bool) -> McpCallItem:
    """Return the item of a call with its result."""
    if not failed:
        output = result if isinstance(result, str) else json_values.to_json(result)
        return {**call, "status": "completed", "output": output}
    content = result.get("error", result) if isinstance(result, Mapping) else result
    return {**call, "status": "failed", "error": {"type": "mcp_tool_execution_error", "content": content}}


def write_approval_request(
    request_id: str, name: str, arguments: str, origin: CallOrigin = "api"
) -> ApprovalRequestItem:
    """Return the approval request for a call."""
    return {
        "id": request_id,
        "type": "mcp_approval_request",
        "status": "completed",
        "server_label": SERVER_LABEL,
        "name": name,
        "arguments": arguments,
        **_from_text(origin),
    }


def write_form_request(form: InputRequested) -> ApprovalRequestItem:
    """Return the form of a call as an approval request; its arguments have the message and the schema."""
    shown = shown_document({"message": form.message, "schema": form.schema})
    return write_approval_request(input_id(form.event_id), form.name, json_values.to_json(shown))


def _from_text(origin: CallOrigin) -> _Origin:
    return {} if origin == "api" else {"beckon:origin": origin}


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
    return [item for message in number_items(messages, owner) for item in message.items]


@dataclass(frozen=True, slots=True)
class NumberedItems:
    """A message with its items, and their numbers; the last number is that of the item after them."""

    message: Message
    items: list[ConversationItem]
    numbers: list[int]


def number_items(messages: Sequence[Message], owner: str) -> Iterator[NumberedItems]:
    """Yield each message with its items.

    Items are numbered through, except where a message has numbers of its own: one before it was changed.
    """
    answers = {
        json_values.as_text(message.get("tool_call_id")): message for message in _tool_messages(messages)
    }
    numbers: list[int] = [0]
    earlier: Iterator[int] = iter(())

    def next_id(kind: str) -> str:
        # Longer than the id of an output item: such an item may not be taken for one.
        identity = f"{kind}_{hashlib.sha256(f'{owner}.{numbers[-1]}'.encode()).hexdigest()[:40]}"
        numbers.append(next(earlier, numbers[-1] + 1))
        return identity

    for message in messages:
        earlier = iter(message.get(ITEM_NUMBERS, ()))
        numbers = [next(earlier, numbers[-1])]
        items = list(_write_items(message, answers, next_id))
        yield NumberedItems(message, items, numbers)


def item_page(items: Sequence[ConversationItem], *, after: str | None, limit: int, order: Order) -> ItemPage:
    """Return one page of a list in the API's shape. Raises `ApiError` for an unknown `after`."""
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


def _tool_messages(messages: Sequence[Message]) -> Iterator[Message]:
    return (message for message in messages if message.get("role") == "tool")


def _write_items(
    message: Message, answers: dict[str, Message], next_id: _NextId
) -> Iterator[ConversationItem]:
    match message.get("role"):
        case "assistant":
            yield from _write_assistant_items(message, answers, next_id)
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


def _write_assistant_items(
    message: Message, answers: dict[str, Message], next_id: _NextId
) -> Iterator[ConversationItem]:
    if thought := json_values.as_text(message.get("reasoning_content")):
        yield write_text_item("reasoning", next_id("rs"), write_part("reasoning", thought), "completed")
    if text := json_values.as_text(message.get("content")):
        part = write_part("message", text, read_citations(message.get("annotations")))
        yield write_text_item("message", next_id("msg"), part, "completed")
    if refusal := json_values.as_text(message.get("refusal")):
        yield write_text_item("refusal", next_id("msg"), write_part("refusal", refusal), "completed")
    for call in json_values.as_sequence(message.get("tool_calls")):
        yield _write_call(json_values.as_mapping(call), answers, next_id)


def _write_call(call: Any, answers: dict[str, Message], next_id: _NextId) -> FunctionCallItem | McpCallItem:
    function = json_values.as_mapping(call.get("function"))
    call_id, name, arguments = (
        json_values.as_text(call.get("id")),
        json_values.as_text(function.get("name")),
        function.get("arguments"),
    )
    text = arguments if isinstance(arguments, str) else json_values.to_json(arguments)
    answer = answers.get(call_id, {})
    if not answer.get("name"):
        return write_function_call(next_id("fc"), call_id, name, text, "completed")
    content = json_values.as_text(answer.get("content"))
    return finish_mcp_call(write_mcp_call(next_id("mcp"), name, text), content, failed=False)
