"""GLM-4: the tool's name on a line and JSON below it; GLM-4.5 and later write keys and values."""

from collections.abc import Sequence
from typing import Final

from beckon_agent.dialects.glm import named_line
from beckon_agent.dialects.hermes import TOOL_CALL
from beckon_agent.dialects.jsontext import dump
from beckon_agent.dialects.reader import Grammar
from beckon_agent.dialects.rendering import Call, TextDialect, described, lines
from beckon_agent.model.types import Declaration

_OBSERVATION: Final = "<|observation|>"


def _instructions(tools: Sequence[Declaration]) -> str:
    functions = [described(tool) for tool in tools]
    return lines(
        "# Available tools",
        *(f"\n## {function['name']}\n\n{dump(function)}" for function in functions),
        "\nTo call a tool, write its name on a line of its own and its arguments as JSON on the next line:",
        'NAME\n{"PARAMETER": "VALUE"}',
        f"Results follow {_OBSERVATION}.",
    )


def _call(call: Call) -> str:
    return f"{call.name}\n{dump(call.arguments)}"


def _result(name: str, content: str) -> str:
    return f"{_OBSERVATION}\n{content}"


GLM4: Final = TextDialect(
    name="glm4",
    grammar=Grammar({"<tool_call>": TOOL_CALL}, line=named_line, silent=frozenset({"<|assistant|>"})),
    instructions=_instructions,
    call=_call,
    result=_result,
    stop=("<|user|>", _OBSERVATION),
)
