"""The API's `tool_choice`, and its effect on a run."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field

from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.responses.output import SERVER_LABEL
from beckon_agent.api.responses.validation import unsupported_error
from beckon_agent.core import json_values
from beckon_agent.core.run_types import ClientTool, Options
from beckon_contract.names import RESERVED


class NamedFunction(BaseModel):
    """One function that the model must call: the client's, or one of the cluster's tools."""

    type: Literal["function"]
    name: str


class NamedServer(BaseModel):
    """The cluster's tools, or one of them."""

    type: Literal["mcp"]
    server_label: str
    name: str | None = None


class AllowedTools(BaseModel):
    """The tools that the model may call, of all that it is shown."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"] = "auto"
    tools: list[dict[str, Any]] = Field(max_length=1000)


_SHOWN = 80

ToolChoice = Literal["none", "auto", "required"] | NamedFunction | NamedServer | AllowedTools


@dataclass(frozen=True, slots=True)
class ToolChoiceOptions:
    """The options of a run from its `tool_choice`.

    `first` applies to the first answer only, or the model would never end.
    """

    use_tools: bool = True
    first: object = None
    allowed: tuple[str, ...] | None = None


def read_choice(choice: ToolChoice | None) -> ToolChoiceOptions:
    """Return the run options for a `tool_choice`.

    Raises `ApiError` for tools that cannot be chosen.
    """
    match choice:
        case None | "auto":
            return ToolChoiceOptions()
        case "none":
            return ToolChoiceOptions(use_tools=False)
        case "required":
            return ToolChoiceOptions(first="required")
        case NamedFunction():
            return ToolChoiceOptions(first=_name_function(choice.name))
        case NamedServer():
            if choice.server_label != SERVER_LABEL or choice.name is None:
                message = f"name one tool of the server {SERVER_LABEL!r}, by 'name'"
                raise unsupported_error("tool_choice", message)
            return ToolChoiceOptions(first=_name_function(choice.name))
        case AllowedTools():
            first = "required" if choice.mode == "required" else None
            return ToolChoiceOptions(first=first, allowed=_read_names(choice))


def check_tools(options: Options, ours: Container[str]) -> None:
    """Raise `ApiError` for tool names already taken or unknown.

    A client's tool must not have the name of another tool, or a reserved one. A choice must name an
    existing tool. `ours` are the names of the cluster's tools.
    """
    theirs = _check_names(options.client_tools, ours)
    chosen_one = json_values.as_text(
        json_values.as_mapping(json_values.as_mapping(options.first_choice).get("function")).get("name")
    )
    for name in filter(None, (chosen_one, *(options.allowed_tools or ()))):
        if name not in theirs and name not in ours:
            message = f"tool_choice: there is no tool {name[:_SHOWN]!r}; bring it, or see GET /tools"
            raise ApiError(400, message, code="unknown_tool", param="tool_choice")


def _check_names(tools: Sequence[ClientTool], ours: Container[str]) -> frozenset[str]:
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        place = f"tools.{index}.name"
        if tool.name in ours or tool.name in seen or tool.name in RESERVED:
            who = (
                "this request"
                if tool.name in seen
                else "the agent"
                if tool.name in RESERVED
                else "the cluster"
            )
            message = f"{place}: {who} has a tool {tool.name!r} already; call the function otherwise"
            raise ApiError(400, message, code="tool_name_taken", param=place)
        seen.add(tool.name)
    return frozenset(seen)


def _name_function(name: str) -> dict[str, object]:
    return {"type": "function", "function": {"name": name}}


def _read_names(choice: AllowedTools) -> tuple[str, ...]:
    names = [tool.get("name") for tool in choice.tools]
    if not all(isinstance(name, str) for name in names):
        raise unsupported_error("tool_choice.tools", "every allowed tool must be given by its 'name'")
    return tuple(str(name) for name in names)
