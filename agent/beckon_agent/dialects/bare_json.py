"""Calls as bare JSON objects, and the recipe of prompts for any model.

The recipe puts tools and the schema of the answer into the prompt: an object
`{"functionCall": {"name": …, "args": {…}}}`, bare or in a fence, is a call; several come one after the
other (or in a list). Anything else is the answer to the user.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from beckon_agent.core.model_types import Declaration
from beckon_agent.dialects.base import RawCall, ToolSchemas, calls_in, function_element, parse_loosely
from beckon_agent.dialects.json_text import any_json, json_value, parse_json, to_json
from beckon_agent.dialects.reader import Form, Grammar
from beckon_agent.dialects.rendering import TextDialect, WriteCall, describe_tool, escape_markup, join_lines
from beckon_agent.dialects.text_parser import Damaged, Steps, TextSource

LONGEST_HELD: Final = 65_536
"""Characters that are held back until they prove to be a call; longer JSON is an answer."""

_KEY: Final = re.compile(r"\w*", re.ASCII)
_NAME: Final = re.compile(r"[\w.\-]*", re.ASCII)
_LONGEST_NAME: Final = 128


@dataclass(frozen=True)
class BareJson:
    """The forms of one family of such calls.

    `keys` are those with which an object of a call may begin. With `known`, its name must be that of a
    declared tool. With `certain`, the first key leaves no doubt, so that damaged JSON is a call, too. `read`
    finds the calls in a complete value.
    """

    keys: frozenset[str]
    read: Callable[[str], Sequence[RawCall]]
    known: bool = False
    certain: bool = False

    @property
    def forms(self) -> Mapping[str, Form]:
        """The forms by their openers."""
        return {"{": self.read_object, "[": self.read_list, "```": self.read_fenced}

    def read_object(self, source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
        """Read a call after `{`. Another object after a `;` is left for the next turn."""
        calls = yield from self._read_value(source, tools)
        if calls:
            yield from source.after_space(";")
        return calls

    def read_list(self, source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
        """Read a list of such objects after `[`."""
        if not (yield from source.after_space("{")):
            return None
        return (yield from self._read_value(source, tools))

    def read_fenced(self, source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
        """Read an object or a list after three backticks. It ends with the closing fence."""
        yield from source.take_match(_KEY, _LONGEST_NAME)
        if not (yield from source.after_space("{", "[{")):
            return None
        calls = yield from self._read_value(source, tools)
        if calls:
            yield from source.after_space("```")
        return calls

    def _read_value(self, source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
        if not (yield from self._begins_like_call(source, tools)):
            return None
        raw = source.raw()
        before = raw[min(raw.find(bracket) for bracket in "[{" if bracket in raw) :]
        if self.certain:
            return self.read((yield from any_json(source, before=before)))
        try:
            text = yield from json_value(source, before, LONGEST_HELD)
            parse_json(text)
        except (Damaged, ValueError):
            return None
        calls = self.read(text)
        if self.known and not all(call.name in tools for call in calls):
            return None
        return calls or None

    def _begins_like_call(self, source: TextSource, tools: ToolSchemas) -> Steps[bool]:
        """True if the object begins like a call.

        If the name comes first and `known` is set, it must be that of a declared tool.
        """
        if not (yield from source.after_space('"')):
            return False
        key = yield from source.take_match(_KEY, _LONGEST_NAME)
        if key not in self.keys or not (yield from source.take_literal('"')):
            return False
        if not (self.known and key == "name"):
            return True
        if not (yield from source.after_space(":")) or not (yield from source.after_space('"')):
            return False
        name = yield from source.take_match(_NAME, _LONGEST_NAME)
        return name in tools and (yield from source.take_literal('"'))


_KEYS: Final = frozenset({"name", "parameters", "arguments", "type", "id", "function"})

NAMED: Final = BareJson(_KEYS, calls_in)
"""`{"name": …, "parameters": …}` where the dialect says that such an object is a call."""

KNOWN: Final = BareJson(_KEYS, calls_in, known=True)
"""The same where it may be an answer: only with the name of a declared tool."""


SILENT: Final = frozenset({"<|eom_id|>", "<|eot_id|>"})
FRAMING: Final = frozenset({"<|python_tag|>"})


def _write_instructions(tools: Sequence[Declaration]) -> str:
    return join_lines(
        "You can call the functions below. To call one, answer with nothing but a JSON object:",
        '{"name": "FUNCTION", "parameters": {"PARAMETER": "VALUE"}}',
        "For several calls write several such objects, divided by `; `. Use no variables.",
        "The results follow as messages that begin with `Result of`.",
        "",
        *(to_json({"type": "function", "function": describe_tool(tool)}) for tool in tools),
    )


def _write_call(call: WriteCall) -> str:
    return to_json({"name": call.name, "parameters": call.arguments})


def result_line(name: str, content: str) -> str:
    """Write a result in a user's message, for models without own markup."""
    return f"Result of {name}:\n{content}"


LLAMA3: Final = TextDialect(
    name="llama3",
    grammar=Grammar({**NAMED.forms, "<function=": function_element}, silent=SILENT, framing=FRAMING),
    instructions=_write_instructions,
    call=_write_call,
    result=result_line,
    joiner="; ",
)


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


def _read_function_calls(text: str) -> Sequence[RawCall]:
    value = parse_loosely(text)
    if value is None:
        return calls_in(text.rstrip().removesuffix("}"))
    items = value if isinstance(value, list) else [value]
    bodies = [item.get("functionCall") for item in items if isinstance(item, Mapping)]
    return [call for body in bodies for call in calls_in(to_json(body))]


def _describe_tools(tools: Sequence[Declaration]) -> str:
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


def _write_function_call(call: WriteCall) -> str:
    return to_json({"functionCall": {"name": call.name, "args": call.arguments}})


def _write_response(name: str, content: str) -> str:
    try:
        response = parse_json(content)
    except ValueError:
        response = content
    return (
        f'{{"functionResponse": {{"name": {to_json(name)}, "response": {escape_markup(to_json(response))}}}}}'
    )


PROMPTED: Final = TextDialect(
    name="prompted",
    grammar=Grammar(
        BareJson(frozenset({"functionCall"}), _read_function_calls, certain=True).forms, whole=True
    ),
    instructions=_describe_tools,
    call=_write_function_call,
    result=_write_response,
)
