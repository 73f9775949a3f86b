"""The items of a response's output, as the API writes them."""

from collections.abc import Mapping
from typing import Any, Literal

from beckon_agent.core import json_values
from beckon_contract.tools import CallOrigin

Item = dict[str, Any]
"""One item of the API."""

Progress = Literal["in_progress", "completed", "incomplete"]

SERVER_LABEL = "cluster"
"""The one server whose tools the agent calls itself."""


def message(item_id: str, text: str | None, status: Progress) -> Item:
    """Return a message of the model.

    `text` is `None` if the message has only begun.
    """
    content = [] if text is None else [text_part(text)]
    return {"id": item_id, "type": "message", "status": status, "role": "assistant", "content": content}


def text_part(text: str) -> dict[str, object]:
    """Return the content part of a message."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def reasoning(item_id: str, text: str | None, status: Progress) -> Item:
    """Return a reasoning item of the model.

    `text` is `None` if the reasoning has only begun.
    """
    content = [] if text is None else [reasoning_part(text)]
    return {"id": item_id, "type": "reasoning", "status": status, "summary": [], "content": content}


def reasoning_part(text: str) -> dict[str, object]:
    """Return the content part of a reasoning item."""
    return {"type": "reasoning_text", "text": text}


def function_call(item_id: str, call_id: str, name: str, arguments: str, status: Progress) -> Item:
    """Return a call of a client tool, answered by the client."""
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
) -> Item:
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


def mcp_answer(result: object, *, failed: bool) -> dict[str, object]:
    """Return the members of a call's item changed by its result."""
    if not failed:
        return {
            "status": "completed",
            "output": result if isinstance(result, str) else json_values.to_json(result),
        }
    content = result.get("error", result) if isinstance(result, Mapping) else result
    return {"status": "failed", "error": {"type": "mcp_tool_execution_error", "content": content}}


def approval_request(request_id: str, name: str, arguments: str, origin: CallOrigin = "api") -> Item:
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


def _from_text(origin: CallOrigin) -> Item:
    """Return the extension member for a call read from text.

    Calls from the server's `tool_calls` have none.
    """
    return {} if origin == "api" else {"beckon:origin": origin}
