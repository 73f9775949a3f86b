"""Calls as a Python list: `[f(a=1), g()]` of Llama 4, Llama 3.2, Olmo 3 and LFM2."""

from collections.abc import Sequence
from typing import Final

from beckon_agent.core.model_types import Declaration
from beckon_agent.dialects.bare_json import result_line
from beckon_agent.dialects.base import RawCall, ToolSchemas
from beckon_agent.dialects.glm import LONGEST_NAME, NAME
from beckon_agent.dialects.json_text import to_json
from beckon_agent.dialects.python_text import call_arguments
from beckon_agent.dialects.reader import Form, Grammar
from beckon_agent.dialects.rendering import TextDialect, WriteCall, describe_tool, join_lines
from beckon_agent.dialects.text_parser import Damaged, Steps, TextSource

SILENT: Final = frozenset({"<|eom|>", "<|eot|>"})
FRAMING: Final = frozenset({
    "<|python_start|>", "<|python_end|>", "<|tool_call_start|>", "<|tool_call_end|>",
})  # fmt: skip


def call_list(*, known: bool) -> Form:
    """Return the form for a list of calls after `[`.

    With `known`, their names must be those of declared tools.
    """

    def read_calls(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
        calls: list[RawCall] = []
        try:
            while True:
                yield from source.skip_blanks()
                name = yield from source.take_match(NAME, LONGEST_NAME)
                if not name or (known and name not in tools) or not (yield from source.take_literal("(")):
                    return None
                calls.append(RawCall.from_parsed(name, (yield from call_arguments(source))))
                if (yield from source.after_space("]", ",")) != ",":
                    return calls
        except Damaged:
            return None

    return read_calls


def _write_instructions(tools: Sequence[Declaration]) -> str:
    return join_lines(
        "You can call the functions below. To call some, answer with nothing but a Python list of calls:",
        "[first_function(parameter='value'), second_function(parameter=1)]",
        "The results follow as messages that begin with `Result of`.",
        "",
        *(to_json(describe_tool(tool)) for tool in tools),
    )


def write_keywords(call: WriteCall) -> str:
    """Write arguments as Python keyword arguments."""
    return ", ".join(f"{name}={argument!r}" for name, argument in call.arguments.items())


def _write_call(call: WriteCall) -> str:
    return f"{call.name}({write_keywords(call)})"


PYTHONIC: Final = TextDialect(
    name="pythonic",
    grammar=Grammar({"[": call_list(known=False)}, silent=SILENT, framing=FRAMING),
    instructions=_write_instructions,
    call=_write_call,
    result=result_line,
    opening="[",
    closing="]",
    joiner=", ",
)
