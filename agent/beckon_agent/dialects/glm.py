"""The GLM family's calls: ChatGLM3's name and `tool_call(…)`, GLM-4's name and JSON, GLM-4.5's keys."""

import re
from collections.abc import Sequence
from typing import Final

from beckon_agent.dialects.base import RawCall, ToolSchemas
from beckon_agent.dialects.json_text import any_json, json_value
from beckon_agent.dialects.python_text import call_arguments
from beckon_agent.dialects.text_parser import Damaged, Incomplete, Steps, TextSource

NAME: Final = re.compile(r"[\w.\-]*", re.ASCII)
LONGEST_NAME: Final = 128
_INDENT: Final = re.compile(r"[ \t\r]*")
_KEYED_END: Final = "</tool_call>"
_LONGEST_HELD: Final = 65_536
"""Characters of JSON below a known name that are held back until they prove to be a call."""


def named_line(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
    """Read a line with only a tool's name, and the call below it.

    The call is a fenced `tool_call(…)` or JSON. The fenced call proves itself; JSON is a call only below the
    name of a known tool.
    """
    name = yield from source.take_match(NAME, LONGEST_NAME)
    if not name:
        return None
    yield from source.take_match(_INDENT)
    if not (yield from source.take_literal("\n")):
        return None
    following = yield from source.beyond_space()
    if following == "{" and name in tools:
        yield from source.skip_blanks()
        return (yield from _json_below(source, name))
    if following != "`" or not (yield from source.after_space("```python")):
        return None
    if not (yield from source.after_space("tool_call(")):
        return None
    return (yield from _read_fenced(source, name))


def _json_below(source: TextSource, name: str) -> Steps[Sequence[RawCall] | None]:
    try:
        return [RawCall(name, (yield from json_value(source, limit=_LONGEST_HELD)))]
    except Damaged:
        return None


def _read_fenced(source: TextSource, name: str) -> Steps[Sequence[RawCall]]:
    calls: list[RawCall] = []
    while True:
        try:
            calls.append(RawCall.from_parsed(name, (yield from call_arguments(source))))
        except Incomplete:
            raise
        except Damaged:
            return [*calls, RawCall(name, (yield from _to_the_fence(source)))]
        if (yield from source.after_space("```", "tool_call(")) != "tool_call(":
            return calls


def _to_the_fence(source: TextSource) -> Steps[str]:
    """Take the text up to the fence; return all arguments unchanged.

    They are damaged, and the error for the model names their faults.
    """
    _, stop = yield from source.take_until("```")
    if not stop:
        raise Incomplete
    written = source.raw().rpartition("tool_call(")[2]
    return written.removesuffix(stop).strip().removesuffix(")")


def keyed_call(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
    """Read a call after `<tool_call>`: a name, then keys and values.

    They are pairs of `<arg_key>` and `<arg_value>`. JSON after the name is read, too.
    """
    yield from source.skip_blanks()
    name = yield from source.take_match(NAME, LONGEST_NAME)
    begin = yield from source.after_space("<tool_sep>", "<arg_key>", _KEYED_END, "{")
    if not name or not begin:
        return None
    if begin == "{":
        call = RawCall(name, (yield from any_json(source, _KEYED_END, before="{")))
        yield from source.after_space(_KEYED_END)
        return [call]
    if begin == "<tool_sep>":
        begin = yield from source.after_space("<arg_key>", _KEYED_END)
    arguments: dict[str, object] = {}
    while begin == "<arg_key>":
        key, text = yield from _read_pair(source)
        arguments[key] = tools.to_typed_value(name, key, text)
        begin = yield from source.after_space("<arg_key>", _KEYED_END)
    if not begin:
        raise source.error_here()
    return [RawCall.from_parsed(name, arguments)]


def _read_pair(source: TextSource) -> Steps[tuple[str, str]]:
    key, _ = yield from source.take_until("</arg_key>")
    if not (yield from source.after_space("<arg_value>")):
        raise source.error_here()
    text, closed = yield from source.take_until("</arg_value>")
    if not closed:
        raise Incomplete
    return key.strip(), text.strip()
