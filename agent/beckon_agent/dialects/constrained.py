"""The prompted dialect where the server constrains the answer by a JSON Schema.

The answer is one JSON object: `{"tool": …, "arguments": {…}}` is a call, `{"answer": …}` is text to show. The
schema has a branch for each offered tool and one for the answer, so a weak model can write nothing else.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import from_json

from beckon_agent.core import json_values
from beckon_agent.core.model_types import Declaration, ToolCall, call_id
from beckon_agent.core.run_events import TextDelta
from beckon_agent.dialects.bare_json import PROMPTED, result_line
from beckon_agent.dialects.base import Allows, Item, NewId, RawCall, Reader, allow_everything
from beckon_agent.dialects.json_text import to_json
from beckon_agent.dialects.reader import HELD_LIMIT, Grammar
from beckon_agent.dialects.rendering import TextDialect, WriteCall, describe_tool, join_lines

_DEFINITIONS: Final = "#/$defs/"
_ANY: Final[Mapping[str, object]] = {"type": "object"}
_DECODER: Final = json.JSONDecoder(strict=False)


def answer_format(tools: Sequence[Declaration], choice: object = None) -> dict[str, Any]:
    """Return the `response_format` for an answer with these tools.

    `choice` is the request's `tool_choice`: with `required` the answer must be a call, with a named function
    a call of this one. The tools are declared in keywords that grammars take.
    """
    functions = [json_values.as_mapping(tool.get("function")) for tool in tools]
    forced = json_values.as_mapping(json_values.as_mapping(choice).get("function")).get("name")
    branches: list[object] = []
    definitions: dict[str, object] = {}
    for number, function in enumerate(functions):
        if choice != "none" and forced in (None, function.get("name")):
            arguments = _prefix_references(function.get("parameters") or _ANY, f"{number}-")
            inner = json_values.as_mapping(arguments.pop("$defs", None))
            definitions |= {f"{number}-{name}": schema for name, schema in inner.items()}
            branches.append(_object_of({"tool": {"const": function.get("name")}, "arguments": arguments}))
    if not branches or (choice != "required" and forced is None):
        branches.append(_object_of({"answer": {"type": "string"}}))
    schema = {"anyOf": branches, **({"$defs": definitions} if definitions else {})}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def _prefix_references(node: Any, prefix: str) -> Any:
    """Return a copy of a schema that refers to definitions with a prefix: those of all tools are in one."""
    if isinstance(node, list):
        return [_prefix_references(member, prefix) for member in node]
    if isinstance(node, Mapping):
        return {key: _prefix_references(member, prefix) for key, member in node.items()} | (
            {"$ref": f"{_DEFINITIONS}{prefix}{reference.removeprefix(_DEFINITIONS)}"}
            if isinstance(reference := node.get("$ref"), str)
            else {}
        )
    return node


def _object_of(properties: Mapping[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _write_instructions(tools: Sequence[Declaration]) -> str:
    return join_lines(
        "You answer with one JSON object. To use one of the tools below:",
        '{"tool": "TOOL", "arguments": {"PARAMETER": "VALUE"}}',
        "The result follows as a message that begins with `Result of`.",
        "When no tool is needed, or the results suffice, answer the user:",
        '{"answer": "TEXT"}',
        "",
        "The tools, each with an example of a call:",
        *(_describe_with_example(tool) for tool in tools),
    )


def _describe_with_example(tool: Declaration) -> str:
    described = describe_tool(tool)
    parameters = json_values.as_mapping(described["parameters"])
    example = _write_call(WriteCall(str(described["name"]), example_arguments(parameters)))
    return f"{to_json(described)}\nExample: {example}"


def example_arguments(schema: Mapping[str, object]) -> dict[str, object]:
    """Return an example of a tool's arguments: its required parameters, or else the first one."""
    properties = json_values.as_mapping(schema.get("properties"))
    names = [name for name in json_values.as_sequence(schema.get("required")) if name in properties]
    return {str(name): _example_value(properties[str(name)]) for name in names or list(properties)[:1]}


def _example_value(schema: object) -> object:
    entry = json_values.as_mapping(schema)
    examples = [entry[keyword] for keyword in ("const", "default") if keyword in entry]
    listed = (json_values.as_sequence(entry.get(keyword)) for keyword in ("examples", "enum"))
    examples += [value for values in listed for value in values]
    if examples:
        return examples[0]
    kind = entry.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "array":
        return [_example_value(entry.get("items"))]
    if kind == "object":
        return example_arguments(entry)
    return {"integer": entry.get("minimum", 1), "number": 1, "boolean": True}.get(str(kind), "…")


def _write_call(call: WriteCall) -> str:
    return to_json({"tool": call.name, "arguments": call.arguments})


@dataclass(frozen=True, kw_only=True)
class _Constrained(TextDialect):
    """A text dialect whose answers are JSON objects."""

    def make_reader(
        self, tools: Sequence[Declaration], new_id: NewId = call_id, allows: Allows = allow_everything
    ) -> Reader:
        """Return a reader for one answer of the model. Calls refused by `allows` stay text."""
        return ObjectReader(tools, new_id, allows)

    def _write_answer(self, text: str, calls: Sequence[Mapping[str, Any]]) -> str:
        return TextDialect._write_answer(self, to_json({"answer": text}) if text else text, calls)


CONSTRAINED: Final = _Constrained(
    name="prompted, constrained",
    grammar=Grammar({}, whole=True),
    instructions=_write_instructions,
    call=_write_call,
    result=result_line,
)


class ObjectReader:
    """Reads an answer that is one JSON object; see `Reader` in `base`.

    The text of an answer comes out as it arrives. What is no such object is read as the prompted dialect
    reads it: a server may ignore the schema. `keeps_format` says whether it does, `None` until that shows.
    """

    def __init__(self, tools: Sequence[Declaration], new_id: NewId, allows: Allows) -> None:
        self._new_id = new_id
        self._allows = allows
        self._plain = PROMPTED.make_reader(tools, new_id, allows)
        self._reads_plainly = False
        self.keeps_format: bool | None = None
        self._raw = ""
        self._shown = 0
        """The characters of the answer that came out."""

    def feed(self, text: str) -> list[Item]:
        """Take the next piece; return the items certain by now, in order."""
        if self._reads_plainly:
            return self._plain.feed(text)
        self._raw += text
        stripped = self._raw.lstrip()
        if stripped and (stripped[0] != "{" or len(self._raw) > HELD_LIMIT) and not self._shown:
            self._reads_plainly = True
            self.keeps_format = False
            return self._plain.feed(self._raw)
        return self._show(self._partial_answer())

    def finish(self, *, called: bool = False) -> list[Item]:
        """End the answer; return the rest. `called` is True if the server gave calls of its own."""
        if self._reads_plainly:
            return self._plain.finish(called=called)
        raw = json_values.well_formed(self._raw).lstrip()
        try:
            value, end = _DECODER.raw_decode(raw)
        except (ValueError, RecursionError):
            value, end = None, 0
        rest = raw[end:].rstrip() if end else ""
        call = None if called or rest else _to_call(value)
        if end:  # what broke off may have begun well
            self.keeps_format = not rest and (call is not None or _is_answer(value))
        if call is not None and self._allows([call], self._raw):
            return [ToolCall(self._new_id(), call.name, call.arguments, origin="dialect")]
        answer = _to_answer(value) if end else self._partial_answer()
        if answer is None and not self._shown:
            return [*self._plain.feed(self._raw), *self._plain.finish(called=called)]
        return self._show(None if answer is None else answer + rest)

    def _partial_answer(self) -> str | None:
        # The next piece may complete a character whose first half is the end; pydantic reads no halves.
        raw = self._raw[:-1] if "\ud800" <= self._raw[-1:] <= "\udbff" else self._raw
        try:
            return _to_answer(from_json(json_values.well_formed(raw), allow_partial="trailing-strings"))
        except ValueError:  # it may become readable, or is read at its end
            return None

    def _show(self, answer: str | None) -> list[Item]:
        if answer is None or len(answer) <= self._shown:
            return []
        text, self._shown = answer[self._shown :], len(answer)
        return [TextDelta(json_values.well_formed(text))]


def _to_call(value: object) -> RawCall | None:
    fields = json_values.as_mapping(value)
    name, arguments = fields.get("tool"), fields.get("arguments")
    if fields.keys() != {"tool", "arguments"} or not isinstance(name, str):
        return None
    return RawCall.from_parsed(name, arguments) if isinstance(arguments, Mapping | str) else None


def _is_answer(value: object) -> bool:
    return json_values.as_mapping(value).keys() == {"answer"} and _to_answer(value) is not None


def _to_answer(value: object) -> str | None:
    """Return the text of an answer, `None` for an object that does not begin with one."""
    fields = json_values.as_mapping(value)
    answer = fields.get("answer")
    return answer if isinstance(answer, str) and next(iter(fields)) == "answer" else None
