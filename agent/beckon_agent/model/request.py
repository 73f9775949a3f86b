"""The body of one chat completion request, as the profile of its server wants it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from beckon_agent.core import json_values
from beckon_agent.core.model_types import Declaration, ModelRequest, Turn
from beckon_agent.model.capabilities import Profile
from beckon_agent.model.errors import ModelRefused
from beckon_agent.model.messages import repair_messages

Body = dict[str, Any]
"""The members of one request to `/chat/completions`."""

_OURS = frozenset({"model", "messages", "tools", "stream", "n"})
_WIDER = 4


def chat_body(model: str, request: ModelRequest, profile: Profile) -> Body:
    """Return the body of a streamed request.

    Raises `ModelRefused` for more tools than the provider takes: which of them to
    leave out is not for a client to choose.
    """
    if len(request.tools) > profile.max_tools:
        raise ModelRefused(
            f"{len(request.tools)} tools are more than the {profile.max_tools} that {profile.name} takes",
            code="array_above_max_length",
        )
    body: Body = {key: value for key, value in request.extra.items() if key not in _OURS}
    body |= {
        "temperature": request.temperature,
        profile.limit_field: request.max_tokens,
        "stop": list(request.stop) or None,
        "stream_options": {"include_usage": True},
    }
    body |= _tool_fields(request, profile)
    body = {key: value for key, value in body.items() if value is not None and key not in profile.refuses}
    return {"model": model, "messages": repair_messages(request.messages, profile), "stream": True, **body}


def without_streaming(body: Body, profile: Profile) -> Body:
    """Return the same request without streaming."""
    members = {key: value for key, value in body.items() if key != "stream_options"}
    return {**members, **profile.unstreamed, "stream": False}


def widen_limit(request: ModelRequest, turn: Turn) -> ModelRequest | None:
    """Return the request with a higher limit, `None` if none is needed.

    It is needed if reasoning used up the limit: such an answer has neither text nor calls, and ends with
    `length`.
    """
    if request.max_tokens is None or turn.finish_reason != "length" or turn.text or turn.calls:
        return None
    return replace(request, max_tokens=request.max_tokens * _WIDER)


def required_parameters(tools: Sequence[Declaration]) -> dict[str, list[str]]:
    """Return the names of each declared tool's required parameters, by tool."""
    found: dict[str, list[str]] = {}
    for tool in tools:
        function = json_values.as_mapping(tool.get("function"))
        required = json_values.as_mapping(function.get("parameters")).get("required")
        found[json_values.as_text(function.get("name"))] = (
            list(map(str, required)) if isinstance(required, list) else []
        )
    return found


def _tool_fields(request: ModelRequest, profile: Profile) -> Body:
    choice = request.extra.get("tool_choice")
    # Told to choose none, some models leak the markup of calls (DeepSeek R1): they must not see any.
    if not request.tools or choice == "none":
        return {"tool_choice": None, "parallel_tool_calls": None}
    fields: Body = {"tools": [_to_declaration(tool, profile) for tool in request.tools]}
    if choice is not None and choice != "auto" and not profile.forced_choice:
        fields["tool_choice"] = None
    return fields


def _to_declaration(tool: Declaration, profile: Profile) -> Mapping[str, object]:
    function = json_values.as_mapping(tool.get("function"))
    if profile.strict or "strict" not in function:
        return tool
    return {**tool, "function": {key: value for key, value in function.items() if key != "strict"}}
