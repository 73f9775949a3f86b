"""Llama 3's calls: a JSON object with name and parameters, maybe after `<|python_tag|>`."""

from collections.abc import Sequence
from typing import Final

from beckon_agent.core.model_types import Declaration
from beckon_agent.dialects.bare_json import NAMED
from beckon_agent.dialects.calls import function_element
from beckon_agent.dialects.json_text import to_json
from beckon_agent.dialects.reader import Grammar
from beckon_agent.dialects.rendering import TextDialect, WriteCall, describe_tool, join_lines

SILENT: Final = frozenset({"<|python_tag|>", "<|eom_id|>", "<|eot_id|>"})


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
    grammar=Grammar({**NAMED.forms, "<function=": function_element}, silent=SILENT),
    instructions=_write_instructions,
    call=_write_call,
    result=result_line,
    joiner="; ",
)
