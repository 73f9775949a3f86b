"""Calls in `<tool_call>` tags: JSON for Hermes, Qwen and their relatives, XML for Qwen3-Coder.

In the XML form, the text between a parameter's tags is its value, unchanged.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from beckon_agent.core.model_types import Declaration
from beckon_agent.dialects.base import RawCall, ToolSchemas, calls_in, function_element
from beckon_agent.dialects.glm import keyed_call
from beckon_agent.dialects.json_text import any_json, to_json
from beckon_agent.dialects.reader import Form, Grammar, until_closer
from beckon_agent.dialects.rendering import TextDialect, WriteCall, describe_tool, join_lines
from beckon_agent.dialects.text_parser import Steps, TextSource

CLOSER: Final = "</tool_call>"


def json_between(closer: str = "") -> Form:
    """Return a form for JSON calls up to `closer`; without one, for a single JSON value."""

    def read_json(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
        if (yield from source.beyond_space()) not in ("{", "["):
            return None
        calls: list[RawCall] = []
        while (yield from source.beyond_space()) in ("{", "["):
            yield from source.skip_blanks()
            calls += calls_in((yield from any_json(source, closer)))
            if not closer or (yield from source.after_space(closer)):
                break
        return calls

    return read_json


_json_call = json_between(CLOSER)


def _tool_call(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
    """Read a call after `<tool_call>`. It is JSON, Qwen3-Coder's `<function=`, or GLM-4.5's name and keys."""
    following = yield from source.beyond_space()
    if following in ("{", "["):
        return (yield from _json_call(source, tools))
    if following != "<":
        return (yield from keyed_call(source, tools))
    if not (yield from source.after_space("<function")):
        return None
    if (yield from source.take_literal("=")) and (calls := (yield from function_element(source, tools))):
        return calls
    raise source.error_here()


TOOL_CALL: Final = until_closer(CLOSER, _tool_call)
"""What follows `<tool_call>`."""

TAGS: Final[Mapping[str, Form]] = {
    "<tool_call>": TOOL_CALL,
    "<tool_calls>": json_between("</tool_calls>"),  # Jamba, Hunyuan, MiniMax-M1
    "<|tool_call|>": json_between(),  # Granite 3
    "<function_call>": json_between(),  # Granite 20B
    "<|function_call|>": json_between(),  # GigaChat 3.1
    "<|message_sep|>\n\nfunction call<|role_sep|>\n": json_between(),  # GigaChat 3
    "<longcat_tool_call>": json_between("</longcat_tool_call>"),
    "<|action_start|><|plugin|>": json_between("<|action_end|>"),  # InternLM 2
    "<|START_ACTION|>": json_between("<|END_ACTION|>"),  # Cohere
}
"""Openers of JSON calls and what reads them; those that no dialect renders are read all the same."""


def _write_instructions(tools: Sequence[Declaration]) -> str:
    return join_lines(
        "# Tools",
        "You can call functions. Their signatures, one JSON object a line:",
        "<tools>",
        *(to_json({"type": "function", "function": describe_tool(tool)}) for tool in tools),
        "</tools>",
        "To call a function, write a JSON object with its name and arguments within these tags:",
        '<tool_call>\n{"name": "FUNCTION", "arguments": {"PARAMETER": "VALUE"}}\n</tool_call>',
        "Several calls stand one after the other. The results come back in <tool_response> tags.",
    )


def _write_call(call: WriteCall) -> str:
    return f"<tool_call>\n{to_json({'name': call.name, 'arguments': call.arguments})}\n</tool_call>"


def _write_result(name: str, content: str) -> str:
    return f"<tool_response>\n{content}\n</tool_response>"


HERMES: Final = TextDialect(
    name="hermes",
    grammar=Grammar({"<tool_call>": TOOL_CALL}),
    instructions=_write_instructions,
    call=_write_call,
    result=_write_result,
    stop=("<tool_response>",),
)


def _xml_instructions(tools: Sequence[Declaration]) -> str:
    return join_lines(
        "# Tools",
        "You can call these functions:",
        "<tools>",
        *(to_json(describe_tool(tool)) for tool in tools),
        "</tools>",
        "To call one, write a block of this form, values that are no text as JSON:",
        _xml_call(WriteCall("FUNCTION", {"PARAMETER": "VALUE"})),
        "Several calls stand one after the other. The results come back in <tool_response> tags.",
    )


def _xml_call(call: WriteCall) -> str:
    parameters = "".join(
        f"<parameter={name}>\n{argument if isinstance(argument, str) else to_json(argument)}\n</parameter>\n"
        for name, argument in call.arguments.items()
    )
    return f"<tool_call>\n<function={call.name}>\n{parameters}</function>\n</tool_call>"


QWEN3_CODER: Final = TextDialect(
    name="qwen3_coder",
    grammar=Grammar({"<tool_call>": TOOL_CALL, "<function=": function_element}),
    instructions=_xml_instructions,
    call=_xml_call,
    result=_write_result,
    stop=("<tool_response>",),
)
