"""The base of all dialects: their interface, and calls in the text of a model.

JSON calls are `{"name": …, "arguments": {…}}` and its relatives. Elements begin with `<function=NAME>`.
The types of values come from the tool's schema.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from beckon_agent.core.json_values import as_mapping
from beckon_agent.core.model_types import Declaration, Message, ToolCall, call_id
from beckon_agent.core.run_events import TextDelta
from beckon_agent.dialects.json_text import any_json, parse_json, to_json
from beckon_agent.dialects.python_text import read_literal
from beckon_agent.dialects.text_parser import Damaged, Incomplete, Steps, TextSource

_NAME_KEYS: Final = ("name", "tool_name", "function")
_ARGUMENT_KEYS: Final = ("arguments", "parameters", "args")
_DAMAGED_NAME = re.compile(r"[\"'](?:name|tool_name)[\"']\s*:\s*[\"']([^\"'\s]{1,256})[\"']")
_DAMAGED_ARGUMENTS = re.compile(r"[\"'](?:arguments|parameters|args)[\"']\s*:\s*")


@dataclass(frozen=True, slots=True)
class RawCall:
    """A call without an id. `arguments` is text, and may still need repair."""

    name: str
    arguments: str

    @classmethod
    def from_parsed(cls, name: str, arguments: object) -> "RawCall":
        """Make a call of parsed arguments. A string counts as arguments encoded twice."""
        return cls(name, arguments if isinstance(arguments, str) else to_json(arguments))


def calls_in(text: str) -> list[RawCall]:
    """Return the calls in a JSON object or a list of them.

    Python's notation is understood. In text damaged beyond that the name is still found, and its arguments
    are passed on as they are: the error for the model names their faults.
    """
    document = parse_loosely(text)
    if document is None:
        return _of_damaged(text)
    items = document if isinstance(document, list) else [document]
    return [call for item in items if isinstance(item, Mapping) for call in _of_object(item)]


def parse_loosely(text: str) -> object:
    """Parse JSON or else a Python literal; `None` for neither."""
    try:
        return parse_json(text)
    except ValueError:
        pass
    source = TextSource()
    source.feed(text)
    source.ended = True
    steps = read_literal(source, 0)
    try:
        next(steps)
    except StopIteration as stop:
        value: object = stop.value
        return value
    except Damaged:
        return None
    return None


def _of_object(item: Mapping[str, object]) -> list[RawCall]:
    """Read one object; one without arguments is no call."""
    inner = item.get("function")
    if isinstance(inner, Mapping):
        return _of_object(inner)
    name = next((item[key] for key in _NAME_KEYS if isinstance(item.get(key), str)), None)
    arguments = next((item[key] for key in _ARGUMENT_KEYS if key in item), None)
    if isinstance(name, str) and name and isinstance(arguments, Mapping | str):
        return [RawCall.from_parsed(name, arguments)]
    return []


def _of_damaged(text: str) -> list[RawCall]:
    name, arguments = _DAMAGED_NAME.search(text), _DAMAGED_ARGUMENTS.search(text)
    if name is None or arguments is None:
        return []
    return [RawCall(name[1], text[arguments.end() :].rstrip().removesuffix("}"))]


_MAX_BRANCHES: Final = 200
"""Alternatives and references of one parameter that are looked through."""

_OF_VALUE: Mapping[type, str] = {
    bool: "boolean", int: "number", float: "number", dict: "object", list: "array", type(None): "null",
}  # fmt: skip


class ToolSchemas:
    """The schemas of the declared tools by name.

    They are for dialects that must know a name or a parameter's type.
    """

    def __init__(self, tools: Sequence[Declaration]) -> None:
        self._schemas: dict[str, Mapping[str, object]] = {}
        for tool in tools:
            function = tool.get("function", tool)
            self._schemas[str(function.get("name"))] = as_mapping(function.get("parameters"))

    def __contains__(self, name: str) -> bool:
        return name in self._schemas

    def to_typed_value(self, tool: str, parameter: str, text: str) -> object:
        """Return `text` as a value of the parameter's type.

        It is read as JSON if a type other than string is allowed, or none is given; else, or if the value
        does not fit, it stays text.
        """
        schema = self._schemas.get(tool, {})
        allowed = _allowed_types(as_mapping(schema.get("properties")).get(parameter), schema)
        if allowed == {"string"}:
            return text
        value = _python_words(text)
        fits = not allowed or _OF_VALUE.get(type(value), "string") in allowed
        return value if fits and not isinstance(value, str) else text


def _python_words(text: str) -> object:
    words: dict[str, object] = {"True": True, "False": False, "None": None}
    if text.strip() in words:
        return words[text.strip()]
    try:
        return parse_json(text)
    except ValueError:
        return text


def _allowed_types(schema: object, root: Mapping[str, object]) -> set[str]:
    """Return the JSON types allowed by a schema, "number" for integers.

    The set is empty if the schema names none.
    """
    types: set[str] = set()
    waiting, seen = [schema], set[int]()
    while waiting and len(seen) < _MAX_BRANCHES:
        current = as_mapping(waiting.pop())
        if id(current) in seen:
            continue
        seen.add(id(current))
        types.update(_own_types(current))
        for keyword in ("anyOf", "oneOf", "allOf"):
            waiting.extend(_as_list(current.get(keyword)))
        if isinstance(current.get("$ref"), str):
            waiting.append(_resolve_reference(str(current["$ref"]), root))
    return types


def _own_types(schema: Mapping[str, object]) -> set[str]:
    kind = schema.get("type")
    if kind is not None:
        names = {name for name in _as_list(kind) or [kind] if isinstance(name, str)}
        return {"number" if name == "integer" else name for name in names}
    choices = _as_list(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
    return {_OF_VALUE.get(type(choice), "string") for choice in choices}


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _resolve_reference(reference: str, root: Mapping[str, object]) -> object:
    """Follow a local `#/$defs/name`; any other reference gives nothing."""
    target: object = root
    for step in reference.removeprefix("#/").split("/"):
        target = as_mapping(target).get(step)
    return target


_NAME: Final = re.compile(r"[^<>\s]*")
_LONGEST_NAME: Final = 256
_BEGIN: Final = "<parameter="
_END: Final = "</function>"


def function_element(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
    """Read a call after `<function=`, and a `</tool_call>` after it.

    Models forget the `<tool_call>` tag at either end. Without a name, and a parameter or an end after it,
    this is no call.
    """
    name = yield from source.take_match(_NAME, _LONGEST_NAME)
    if not name or not (yield from source.take_literal(">")):
        return None
    following = yield from source.after_space("{", _BEGIN, _END)
    if not following:
        return None
    if following == "{":  # Llama 3.1's own form
        call = RawCall(name, (yield from any_json(source, _END, before="{")))
        yield from source.after_space(_END)
        return [call]
    arguments: dict[str, object] = {}
    while following == _BEGIN:
        key, text, following = yield from _read_parameter(source)
        arguments[key] = tools.to_typed_value(name, key, text)
        if following not in (_BEGIN, _END):
            following = yield from source.after_space(_BEGIN, _END)
    if not following:
        raise source.error_here()
    yield from source.after_space("</tool_call>")
    return [RawCall.from_parsed(name, arguments)]


def _read_parameter(source: TextSource) -> Steps[tuple[str, str, str]]:
    """Take a parameter's name, its value and the end of the value.

    The end is its own tag, the next parameter, or the function's end.
    """
    key, _ = yield from source.take_until(">")
    text, stop = yield from source.take_until("</parameter>", f"\n{_BEGIN}", f"\n{_END}")
    if not stop:
        raise Incomplete
    return key.strip(), _trim_value(text), stop.strip()


def _trim_value(text: str) -> str:
    """Remove the markup's line breaks around a value. Those of the value itself stay."""
    return text.removeprefix("\n").removesuffix("\n") if text.strip() else ""


Item = TextDelta | ToolCall
"""What a reader finds: text to show, or a call to make."""

NewId = Callable[[], str]
"""Makes the id of a call; a test passes a counter to be deterministic."""


Allows = Callable[[Sequence[RawCall], str], bool]
"""Whether calls that were read in a text may be made, given them and their markup."""


def allow_everything(calls: Sequence[RawCall], markup: str) -> bool:
    """Allow all calls, for a reader of calls never made."""
    return True


@dataclass(frozen=True, slots=True)
class RenderedConversation:
    """A conversation in the form expected by one model.

    `tools` is empty if they are in the prompt. `stop` holds the texts at which such a model begins to invent
    the other side's turn.
    """

    messages: tuple[Message, ...]
    tools: tuple[Declaration, ...] = ()
    stop: tuple[str, ...] = ()


class Reader(Protocol):
    """Reads one answer piece by piece.

    Its cut into pieces never changes the result. All of the answer comes out again as text, except for calls
    that may be made.
    """

    def feed(self, text: str) -> list[Item]:
        """Take the next piece; return the items certain by now, in order. Never raises."""

    def finish(self, *, called: bool = False) -> list[Item]:
        """End the answer; return the rest.

        `called` is True if the server gave calls of its own. Never raises.
        """


class Dialect(Protocol):
    """One form of declarations and calls for a family of models."""

    @property
    def name(self) -> str:
        """The name in the settings."""

    @property
    def native(self) -> bool:
        """True if the server takes `tools` itself."""

    def render(self, messages: Sequence[Message], tools: Sequence[Declaration]) -> RenderedConversation:
        """Return the conversation in the form of the model's training."""

    def make_reader(
        self, tools: Sequence[Declaration], new_id: NewId = call_id, allows: Allows = allow_everything
    ) -> Reader:
        """Return a reader for one answer of the model. Calls refused by `allows` stay text."""
