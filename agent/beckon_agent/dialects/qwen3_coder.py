"""Qwen3-Coder: XML calls in `<tool_call>`, a parameter's text between the tags as it is."""

from collections.abc import Sequence
from typing import Final

from beckon_agent.dialects.elements import function_element
from beckon_agent.dialects.hermes import TOOL_CALL
from beckon_agent.dialects.jsontext import dump
from beckon_agent.dialects.reader import Grammar
from beckon_agent.dialects.rendering import Call, TextDialect, described, lines
from beckon_agent.model.types import Declaration


def _instructions(tools: Sequence[Declaration]) -> str:
    return lines(
        "# Tools",
        "You can call these functions:",
        "<tools>",
        *(dump(described(tool)) for tool in tools),
        "</tools>",
        "To call one, write a block of this form, values that are no text as JSON:",
        _call(Call("FUNCTION", {"PARAMETER": "VALUE"})),
        "Several calls stand one after the other. The results come back in <tool_response> tags.",
    )


def _call(call: Call) -> str:
    parameters = "".join(
        f"<parameter={name}>\n{argument if isinstance(argument, str) else dump(argument)}\n</parameter>\n"
        for name, argument in call.arguments.items()
    )
    return f"<tool_call>\n<function={call.name}>\n{parameters}</function>\n</tool_call>"


def _result(name: str, content: str) -> str:
    return f"<tool_response>\n{content}\n</tool_response>"


QWEN3_CODER: Final = TextDialect(
    name="qwen3_coder",
    grammar=Grammar({"<tool_call>": TOOL_CALL, "<function=": function_element}),
    instructions=_instructions,
    call=_call,
    result=_result,
    stop=("<tool_response>",),
)
