"""A conversation as the demo model reads it: question, tools, results.

Tools come natively (`tools`, role `tool`) or in the prompt: as the general prompt recipe
writes them (`functionCall`), or as ChatGLM3 does (`tool_call(…)` and observations).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Style = Literal["native", "prompted", "chatglm3"]
Message = Mapping[str, object]

_MAX_QUESTION: Final = 4_000
_MAX_STARTS: Final = 100
"""Places in a prompt at which a list of declarations is looked for."""

_MAX_REFERENCES: Final = 10
"""References followed in the schema of one parameter."""

_DECODER: Final = json.JSONDecoder()
_OBSERVATION: Final = "<|observation|>"
_RESPONSE: Final = re.compile(r'\{\s*"functionResponse"')
_CHATGLM3_CALL: Final = re.compile(r"([\w.\-]+)\s*\n```python\ntool_call\(")
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_STOP: Final = frozenset(
    _WORD.findall("""
    a about all also am an and any are as at be been but by can could current did do does e for from
    g get give given had has have he her hey hi him his how i if in into is it its just let like may
    me might my need no not now of off on one or our out please she should so some tell that the
    their them then there these they this those to too up us use using value want was we were what
    whats when where which who why will with would you your""")
)
"""Words that choose no tool."""


def words(text: str) -> list[str]:
    """Return the words of a text or a name, in lower case, without the stop list."""
    words = (word.lower() for word in _WORD.findall(_CAMEL.sub(" ", text)))
    return [word for word in words if word not in _STOP]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a tool. `schema` is its JSON Schema, `hints` the words of its name and description."""

    name: str
    required: bool
    schema: Mapping[str, object]
    hints: frozenset[str]

    @property
    def type(self) -> str:
        """The JSON type, the first that is not null; string by default."""
        kind = self.schema.get("type")
        types = (one for one in (kind if isinstance(kind, list) else [kind]) if isinstance(one, str))
        return next((one for one in types if one != "null"), "string")

    @property
    def choices(self) -> list[object]:
        """The values of an enum; empty if any value is allowed."""
        values = self.schema.get("enum")
        return list(values) if isinstance(values, list) else []

    def named(self, *topics: str) -> bool:
        """Return True if the name has one of these words."""
        return not set(topics).isdisjoint(words(self.name))


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """One tool to choose."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a tool: JSON text, or any other."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """The last question, its results so far, and the offered tools."""

    question: str
    tools: tuple[OfferedTool, ...]
    results: tuple[Result, ...]
    style: Style


def read_conversation(messages: Sequence[Message], tools: Sequence[object]) -> Conversation:
    """Read OpenAI's messages; the tools of the request go before those of a prompt."""
    system = "\n".join(_text(one) for one in messages if one.get("role") in ("system", "developer"))
    style = "native" if tools else _style(system)
    question = ""
    results: list[Result] = []
    called: dict[str, str] = {}
    for message in messages:
        if message.get("role") == "assistant":
            called = _called(message)
            continue
        parts, latest = _read(message, style, called)
        results += parts
        if latest:
            question, results = latest, []
    declared = tools if style == "native" else _declarations(system)
    return Conversation(question[:_MAX_QUESTION], tuple(read_tools(declared)), tuple(results), style)


def read_tools(declarations: Sequence[object]) -> list[OfferedTool]:
    """Read OpenAI's `tools` entries or bare function objects; those without a name are left out."""
    functions = (_mapping(_mapping(entry).get("function")) or _mapping(entry) for entry in declarations)
    return [
        OfferedTool(
            str(one["name"]), str(one.get("description") or ""), read_parameters(one.get("parameters"))
        )
        for one in functions
        if one.get("name")
    ]


def read_parameters(schema: object) -> tuple[Parameter, ...]:
    """Read the properties of an object's schema, with references and alternatives resolved."""
    required = _mapping(schema).get("required")
    known = _mapping(_mapping(schema).get("$defs"))
    return tuple(
        Parameter(
            name,
            isinstance(required, list) and name in required,
            {"$defs": known, **_resolve(one, known)},
            frozenset([*words(name), *words(str(_mapping(one).get("description") or ""))]),
        )
        for name, one in _mapping(_mapping(schema).get("properties")).items()
    )


def _resolve(schema: object, known: Mapping[str, object]) -> Mapping[str, object]:
    """Return the schema behind references to `$defs`, and the first alternative that is not null."""
    resolved = _mapping(schema)
    for _ in range(_MAX_REFERENCES):
        options = resolved.get("anyOf") or resolved.get("oneOf")
        if isinstance(options, list):
            resolved = next((_mapping(one) for one in options if one != {"type": "null"}), {})
        elif isinstance(name := resolved.get("$ref"), str):
            resolved = _mapping(known.get(name.removeprefix("#/$defs/")))
        else:
            break
    return resolved


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _text(message: Message) -> str:
    """Return the text of a message, or of its text parts."""
    content = message.get("content")
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def _style(system: str) -> Style:
    if '"functionCall"' in system:
        return "prompted"
    return "chatglm3" if "tool_call(" in system else "native"


def _declarations(system: str) -> list[object]:
    """Find the JSON list of functions in a prompt."""
    starts = [match.start() for match in re.finditer(r"\[\s*\{", system)]
    for start in starts[:_MAX_STARTS]:
        try:
            value, _ = _DECODER.raw_decode(system, start)
        except (ValueError, RecursionError):
            continue
        if all(isinstance(one, Mapping) and "name" in one for one in value):
            return list(value)
    return []


def _called(message: Message) -> dict[str, str]:
    """Return the tool names of an assistant message's calls, by id or, without ids, by position."""
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        return {str(call["id"]): str(call["function"]["name"]) for call in calls}
    return {str(place): name for place, name in enumerate(_CHATGLM3_CALL.findall(_text(message)))}


def _read(message: Message, style: Style, called: Mapping[str, str]) -> tuple[list[Result], str]:
    """Return the results and the question in a message."""
    text, role = _text(message), message.get("role")
    if role == "tool":
        return [Result(called.get(str(message.get("tool_call_id")), "tool"), text)], ""
    if role != "user":
        return [], ""
    if style == "prompted":
        return _responses(text)
    if style == "chatglm3" and _OBSERVATION in text:
        pieces = text.split(_OBSERVATION)[1:]
        return [Result(called.get(str(i), "tool"), piece.strip()) for i, piece in enumerate(pieces)], ""
    return [], text.strip()


def _responses(text: str) -> tuple[list[Result], str]:
    """Read `{"functionResponse": …}` objects; the text after them is a question."""
    results: list[Result] = []
    end = 0
    while match := _RESPONSE.search(text, end):
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            break
        response = _mapping(value["functionResponse"])
        content = response.get("response")
        written = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        results.append(Result(str(response.get("name")), written))
    return results, text[end:].strip()
