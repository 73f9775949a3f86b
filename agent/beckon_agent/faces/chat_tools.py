"""Functions that a client of chat completions brings and runs itself, in that API's words."""

from collections.abc import Mapping, Sequence

from beckon_agent.core import json_values
from beckon_agent.core.run_types import ClientTool
from beckon_agent.faces.openai_errors import FaceError
from beckon_agent.faces.responses.request import FunctionTool
from beckon_agent.faces.responses.validation import read, unsupported

_NO_PARAMETERS: dict[str, object] = {"type": "object", "properties": {}}


def client_tools(tools: Sequence[object]) -> tuple[ClientTool, ...]:
    """Return the functions of a request; raises `FaceError` for tools of another kind."""
    return tuple(_client_tool(json_values.mapping(tool), f"tools.{at}") for at, tool in enumerate(tools))


def first_choice(choice: object) -> object:
    """Return what the first answer must be, `None` where the model is free; raises `FaceError`."""
    if choice in (None, "auto", "none"):
        return None
    if choice == "required":
        return choice
    name = json_values.text(json_values.mapping(json_values.mapping(choice).get("function")).get("name"))
    if json_values.mapping(choice).get("type") != "function" or not name:
        message = "must be 'auto', 'none', 'required', or an object that names a function"
        raise unsupported("tool_choice", message)
    return {"type": "function", "function": {"name": name}}


def _client_tool(tool: Mapping[str, object], place: str) -> ClientTool:
    if tool.get("type") != "function":
        message = (
            f"tools of the type {str(tool.get('type'))[:40]!r} are not offered: the agent brings the "
            "cluster's tools itself, and calls them; a request may bring tools of the type 'function'"
        )
        raise unsupported(f"{place}.type", message)
    function = tool.get("function")
    if not isinstance(function, Mapping):
        raise FaceError(400, f"{place}.function: must be an object", code="invalid_request", param=place)
    said = read(FunctionTool, {**function, "type": "function"}, f"{place}.function")
    return ClientTool(said.name, said.description or "", said.parameters or _NO_PARAMETERS)
