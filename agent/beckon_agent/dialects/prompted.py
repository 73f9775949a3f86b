"""The general recipe for any model: tools and the answer's schema in the prompt, JSON back.

`{"functionCall": {"name": …, "args": {…}}}`, bare or in a fence, is a call; several come one
after the other (or in a list). Anything else is the answer to the user.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from beckon_agent.core.model_types import Declaration
from beckon_agent.dialects.bare_json import BareJson
from beckon_agent.dialects.calls import RawCall, calls_in, parse_loosely
from beckon_agent.dialects.json_text import parse_json, to_json
from beckon_agent.dialects.reader import Grammar
from beckon_agent.dialects.rendering import TextDialect, WriteCall, describe_tool, escape_markup, join_lines

ANSWER_SCHEMA: Final[Mapping[str, object]] = {
    "title": "Function Call",
    "type": "object",
    "properties": {
        "functionCall": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "args": {"type": "object"}},
            "required": ["name", "args"],
            "additionalProperties": False,
        }
    },
    "required": ["functionCall"],
    "additionalProperties": False,
}


def _read_calls(text: str) -> Sequence[RawCall]:
    value = parse_loosely(text)
    if value is None:
        return calls_in(text.rstrip().removesuffix("}"))
    items = value if isinstance(value, list) else [value]
    bodies = [item.get("functionCall") for item in items if isinstance(item, Mapping)]
    return [call for body in bodies for call in calls_in(to_json(body))]


def _write_instructions(tools: Sequence[Declaration]) -> str:
    return join_lines(
        "You can use these tools, given as JSON:",
        f"```json\n{to_json([describe_tool(tool) for tool in tools])}\n```",
        "When a tool is needed, answer with nothing but a JSON object of this schema:",
        f"```json\n{to_json(ANSWER_SCHEMA)}\n```",
        'For example: {"functionCall": {"name": "TOOL", "args": {"PARAMETER": "VALUE"}}}',
        "For several tools at once, write one such object a line.",
        'Each result comes back as {"functionResponse": {"name": …, "response": …}}.',
        "When no tool is needed, or the results suffice, answer the user in plain text.",
    )


def _write_call(call: WriteCall) -> str:
    return to_json({"functionCall": {"name": call.name, "args": call.arguments}})


def _write_result(name: str, content: str) -> str:
    try:
        response = parse_json(content)
    except ValueError:
        response = content
    return (
        f'{{"functionResponse": {{"name": {to_json(name)}, "response": {escape_markup(to_json(response))}}}}}'
    )


PROMPTED: Final = TextDialect(
    name="prompted",
    grammar=Grammar(BareJson(frozenset({"functionCall"}), _read_calls, certain=True).forms, whole=True),
    instructions=_write_instructions,
    call=_write_call,
    result=_write_result,
)
