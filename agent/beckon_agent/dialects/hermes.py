"""JSON between tags: `<tool_call>{…}</tool_call>` of Hermes and Qwen, and its many relatives."""

from collections.abc import Mapping, Sequence
from typing import Final

from beckon_agent.dialects.calls import RawCall, calls_in
from beckon_agent.dialects.elements import function_element
from beckon_agent.dialects.glm import keyed_call
from beckon_agent.dialects.jsontext import any_json, dump
from beckon_agent.dialects.reader import Form, Grammar, up_to
from beckon_agent.dialects.rendering import Call, TextDialect, described, lines
from beckon_agent.dialects.source import Source, Steps
from beckon_agent.dialects.typed import Toolbox
from beckon_agent.model.types import Declaration

CLOSER: Final = "</tool_call>"


def json_between(closer: str = "") -> Form:
    """Return a form for JSON calls up to `closer`; without one, for a single JSON value."""

    def read(source: Source, tools: Toolbox) -> Steps[Sequence[RawCall] | None]:
        if (yield from source.beyond_space()) not in ("{", "["):
            return None
        calls: list[RawCall] = []
        while (yield from source.beyond_space()) in ("{", "["):
            yield from source.space()
            calls += calls_in((yield from any_json(source, closer)))
            if not closer or (yield from source.after_space(closer)):
                break
        return calls

    return read


_json_call = json_between(CLOSER)


def _tool_call(source: Source, tools: Toolbox) -> Steps[Sequence[RawCall] | None]:
    """Read what follows `<tool_call>`: JSON, Qwen3-Coder's `<function=`, or GLM-4.5's name and keys."""
    following = yield from source.beyond_space()
    if following in ("{", "["):
        return (yield from _json_call(source, tools))
    if following != "<":
        return (yield from keyed_call(source, tools))
    if not (yield from source.after_space("<function")):
        return None
    if (yield from source.take("=")) and (calls := (yield from function_element(source, tools))):
        return calls
    raise source.trouble()


TOOL_CALL: Final = up_to(CLOSER, _tool_call)
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


def _instructions(tools: Sequence[Declaration]) -> str:
    return lines(
        "# Tools",
        "You can call functions. Their signatures, one JSON object a line:",
        "<tools>",
        *(dump({"type": "function", "function": described(tool)}) for tool in tools),
        "</tools>",
        "To call a function, write a JSON object with its name and arguments within these tags:",
        '<tool_call>\n{"name": "FUNCTION", "arguments": {"PARAMETER": "VALUE"}}\n</tool_call>',
        "Several calls stand one after the other. The results come back in <tool_response> tags.",
    )


def _call(call: Call) -> str:
    return f"<tool_call>\n{dump({'name': call.name, 'arguments': call.arguments})}\n</tool_call>"


def _result(name: str, content: str) -> str:
    return f"<tool_response>\n{content}\n</tool_response>"


HERMES: Final = TextDialect(
    name="hermes",
    grammar=Grammar({"<tool_call>": TOOL_CALL}),
    instructions=_instructions,
    call=_call,
    result=_result,
    stop=("<tool_response>",),
)
