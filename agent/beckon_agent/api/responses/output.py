"""The items of a response's output, as the API writes them."""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from beckon_agent.core import json_values
from beckon_contract.tools import CallOrigin

Item = dict[str, Any]
"""One item of an input, before it is validated."""

Progress = Literal["in_progress", "completed", "incomplete"]

SERVER_LABEL = "cluster"
"""The one server whose tools the agent calls itself."""


class OutputText(TypedDict):
    """The content part of a message."""

    type: Literal["output_text"]
    text: str
    annotations: list[Any]
    logprobs: list[Any]


class MessageItem(TypedDict):
    """A message of the model."""

    id: str
    type: Literal["message"]
    status: Progress
    role: Literal["assistant"]
    content: list[OutputText]


class ReasoningText(TypedDict):
    """The content part of a reasoning item."""

    type: Literal["reasoning_text"]
    text: str


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
    type: Literal["mcp_call"]
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
    type: Literal["mcp_approval_request"]
    status: Literal["completed"]
    server_label: str
    name: str
    arguments: str


OutputItem = MessageItem | ReasoningItem | FunctionCallItem | McpCallItem | ApprovalRequestItem
"""One item of a response's output."""


def message(item_id: str, text: str | None, status: Progress) -> MessageItem:
    """Return a message of the model.

    `text` is `None` if the message has only begun.
    """
    content = [] if text is None else [text_part(text)]
    return {"id": item_id, "type": "message", "status": status, "role": "assistant", "content": content}


def text_part(text: str) -> OutputText:
    """Return the content part of a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def reasoning(item_id: str, text: str | None, status: Progress) -> ReasoningItem:
    """Return a reasoning item of the model.

    `text` is `None` if the reasoning has only begun.
    """
    content = [] if text is None else [reasoning_part(text)]
    return {"id": item_id, "type": "reasoning", "status": status, "summary": [], "content": content}


def reasoning_part(text: str) -> ReasoningText:
    """Return the content part of a reasoning item."""
    return {"type": "reasoning_text", "text": text}


def function_call(
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


def mcp_call(
    item_id: str, name: str, arguments: str, approval: str | None = None, origin: CallOrigin = "api"
) -> McpCallItem:
    """Return a running call of a cluster tool.

    `approval` is the id of the request for approval before it.
    """
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


def finished_call(call: McpCallItem, result: object, *, failed: bool) -> McpCallItem:
    """Return the item of a call with its result."""
    if not failed:
        output = result if isinstance(result, str) else json_values.to_json(result)
        return {**call, "status": "completed", "output": output}
    content = result.get("error", result) if isinstance(result, Mapping) else result
    return {**call, "status": "failed", "error": {"type": "mcp_tool_execution_error", "content": content}}


def approval_request(
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


def _from_text(origin: CallOrigin) -> _Origin:
    return {} if origin == "api" else {"beckon:origin": origin}
