"""Mistral's calls: `[TOOL_CALLS]` with a JSON list, or newer with `name[ARGS]{…}`."""

import re
from collections.abc import Sequence
from typing import Final

from beckon_agent.core.model_types import Declaration
from beckon_agent.dialects.base import RawCall, ToolSchemas, calls_in
from beckon_agent.dialects.json_text import any_json, to_json
from beckon_agent.dialects.reader import Grammar
from beckon_agent.dialects.rendering import TextDialect, WriteCall, describe_tool, join_lines
from beckon_agent.dialects.text_parser import Steps, TextSource

_NAME: Final = re.compile(r"[\w.\-]*")
_LONGEST_NAME: Final = 256


def tool_calls(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
    """Read calls after `[TOOL_CALLS]`. They are a list, an object, or a name and its arguments."""
    yield from source.skip_blanks()
    name = yield from source.take_match(_NAME, _LONGEST_NAME)
    if (yield from source.after_space("[CALL_ID]")):
        yield from source.take_match(_NAME, _LONGEST_NAME)
    yield from source.after_space("[ARGS]")
    following = yield from source.beyond_space()
    if following not in ("{", "["):
        return ()
    yield from source.skip_blanks()
    text = yield from any_json(source)
    return [RawCall(name, text)] if name and following == "{" else calls_in(text)


def _write_instructions(tools: Sequence[Declaration]) -> str:
    functions = [{"type": "function", "function": describe_tool(tool)} for tool in tools]
    return join_lines(
        f"[AVAILABLE_TOOLS]{to_json(functions)}[/AVAILABLE_TOOLS]",
        "To call tools, write a line of this form, with one object for each call:",
        '[TOOL_CALLS][{"name": "TOOL", "arguments": {"PARAMETER": "VALUE"}}]',
        "The results come back between [TOOL_RESULTS] and [/TOOL_RESULTS].",
    )


def _write_call(call: WriteCall) -> str:
    return to_json({"name": call.name, "arguments": call.arguments})


def _write_result(name: str, content: str) -> str:
    return f"[TOOL_RESULTS]{to_json({'name': name, 'content': content})}[/TOOL_RESULTS]"


MISTRAL: Final = TextDialect(
    name="mistral",
    grammar=Grammar({"[TOOL_CALLS]": tool_calls}),
    instructions=_write_instructions,
    call=_write_call,
    result=_write_result,
    opening="[TOOL_CALLS][",
    closing="]",
    joiner=", ",
    stop=("[TOOL_RESULTS]",),
)
