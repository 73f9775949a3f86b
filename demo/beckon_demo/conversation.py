"""A conversation as the demo model reads it: question, tools, results.

Tools come natively (`tools`, role `tool`) or in the prompt: as the general prompt recipe
writes them (`functionCall`), or as ChatGLM3 does (`tool_call(…)` and observations).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from beckon_demo.tools import Tool, read_tools

Style = Literal["native", "prompted", "chatglm3"]
Message = Mapping[str, object]

_MAX_QUESTION: Final = 4_000
_MAX_STARTS: Final = 100
"""Places in a prompt at which a list of declarations is looked for."""

_DECODER: Final = json.JSONDecoder()
_OBSERVATION: Final = "<|observation|>"
_RESPONSE: Final = re.compile(r'\{\s*"functionResponse"')
_CHATGLM3_CALL: Final = re.compile(r"([\w.\-]+)\s*\n```python\ntool_call\(")


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a tool: JSON text, or any other."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """The last question, its results so far, and the offered tools."""

    question: str
    tools: tuple[Tool, ...]
    results: tuple[Result, ...]
    style: Style


def read_conversation(messages: Sequence[Message], tools: Sequence[object]) -> Conversation:
    """Read OpenAI's messages; the tools of the request go before those of a prompt."""
    system = "\n".join(text_of(one) for one in messages if one.get("role") in ("system", "developer"))
    style = "native" if tools else _style(system)
    question = ""
    results: list[Result] = []
    called: dict[str, str] = {}
    for message in messages:
        if message.get("role") == "assistant":
            called = _called(message)
            continue
        found, latest = _read(message, style, called)
        results += found
        if latest:
            question, results = latest, []
    declared = tools if style == "native" else _declarations(system)
    return Conversation(question[:_MAX_QUESTION], tuple(read_tools(declared)), tuple(results), style)


def text_of(message: Message) -> str:
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
    starts = [found.start() for found in re.finditer(r"\[\s*\{", system)]
    for start in starts[:_MAX_STARTS]:
        try:
            value, _ = _DECODER.raw_decode(system, start)
        except (ValueError, RecursionError):
            continue
        if all(isinstance(one, Mapping) and "name" in one for one in value):
            return list(value)
    return []


def _called(message: Message) -> dict[str, str]:
    """Return the tool names of an assistant message's calls, by id.

    Calls without an id have their position as the key.
    """
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        return {str(call["id"]): str(call["function"]["name"]) for call in calls}
    return {str(place): name for place, name in enumerate(_CHATGLM3_CALL.findall(text_of(message)))}


def _read(message: Message, style: Style, called: Mapping[str, str]) -> tuple[list[Result], str]:
    """Return the results and the question in a message."""
    text, role = text_of(message), message.get("role")
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
    while found := _RESPONSE.search(text, end):
        try:
            value, end = _DECODER.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            break
        response = value["functionResponse"]
        if isinstance(response, Mapping):
            content = response.get("response")
            written = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            results.append(Result(str(response.get("name")), written))
    return results, text[end:].strip()
