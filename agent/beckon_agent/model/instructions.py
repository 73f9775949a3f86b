"""Instructions in place of request fields that a server does not take.

They are added to the system message of one request, and are no part of the conversation.
"""

from collections.abc import Mapping, Sequence

from beckon_agent.core import json_values
from beckon_agent.core.model_types import Declaration, Message


def is_forced(choice: object) -> bool:
    """True if a `tool_choice` requires a call."""
    return choice not in (None, "auto", "none")


def forced_name(choice: object) -> str:
    """Return the name of the only tool that a `tool_choice` allows, empty without one."""
    function = json_values.as_mapping(json_values.as_mapping(choice).get("function"))
    return json_values.as_text(function.get("name"))


def forced_tools(choice: object, tools: Sequence[Declaration]) -> list[Declaration]:
    """Return the declarations among which a `tool_choice` leaves the choice."""
    name = forced_name(choice)
    return [tool for tool in tools if name in ("", tool.get("function", tool).get("name"))]


def choice_instruction(choice: object) -> str:
    """Return a `tool_choice` in words."""
    name = forced_name(choice)
    what = f"the tool {name}" if name else "one of the tools"
    return f"Call {what} now. Do not answer with text."


def output_schema(response_format: object) -> Mapping[str, object]:
    """Return the JSON Schema of a `response_format`: that of any object if it has none."""
    fields = json_values.as_mapping(json_values.as_mapping(response_format).get("json_schema"))
    return json_values.as_mapping(fields.get("schema")) or {"type": "object"}


def is_strict(response_format: object) -> bool:
    """True if a server must keep to a `response_format`: to a schema only if it is `strict`."""
    fields = json_values.as_mapping(response_format)
    return "json_schema" not in fields or json_values.as_mapping(fields["json_schema"]).get("strict") is True


def format_instruction(response_format: object) -> str:
    """Return a `response_format` in words."""
    schema = json_values.to_json(output_schema(response_format))
    return f"When you answer, write one JSON value of this JSON Schema, and nothing else:\n{schema}"


def add_instruction(messages: Sequence[Message], text: str) -> list[Message]:
    """Return the messages with an instruction at the end of the system message."""
    first: Mapping[str, object] = messages[0] if messages else {}
    if first.get("role") != "system" or not isinstance(first.get("content"), str):
        return [{"role": "system", "content": text}, *messages]
    content = "\n\n".join(filter(None, (json_values.as_text(first["content"]), text)))
    return [{**first, "content": content}, *messages[1:]]
