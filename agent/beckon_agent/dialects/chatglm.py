"""ChatGLM3 and GLM-4: the tool's name on a line, the arguments below it.

ChatGLM3 writes `tool_call(k='v')` in a Python fence, GLM-4 JSON; GLM-4.5 and later write keys and values.

ChatGLM3 was trained with the role `observation` for results. OpenAI-compatible servers
refuse roles that they do not know, so results go in a user's message marked with the model's
own token; `chatglm3_observation` sends the role, for servers that take it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from beckon_agent.core.model_types import Declaration
from beckon_agent.dialects.glm import named_line
from beckon_agent.dialects.hermes import TOOL_CALL
from beckon_agent.dialects.json_text import to_json
from beckon_agent.dialects.pythonic import write_keywords
from beckon_agent.dialects.reader import Grammar
from beckon_agent.dialects.rendering import TextDialect, WriteCall, describe_tool, join_lines

_ASSISTANT: Final = "<|assistant|>"
_OBSERVATION: Final = "<|observation|>"


def _glm4_instructions(tools: Sequence[Declaration]) -> str:
    functions = [describe_tool(tool) for tool in tools]
    return join_lines(
        "# Available tools",
        *(f"\n## {function['name']}\n\n{to_json(function)}" for function in functions),
        "\nTo call a tool, write its name on a line of its own and its arguments as JSON on the next line:",
        'NAME\n{"PARAMETER": "VALUE"}',
        f"Results follow {_OBSERVATION}.",
    )


def _glm4_call(call: WriteCall) -> str:
    return f"{call.name}\n{to_json(call.arguments)}"


def _marked_result(name: str, content: str) -> str:
    return f"{_OBSERVATION}\n{content}"


GLM4: Final = TextDialect(
    name="glm4",
    grammar=Grammar({"<tool_call>": TOOL_CALL}, line=named_line, silent=frozenset({_ASSISTANT})),
    instructions=_glm4_instructions,
    call=_glm4_call,
    result=_marked_result,
    stop=("<|user|>", _OBSERVATION),
)


def _chatglm3_instructions(tools: Sequence[Declaration]) -> str:
    return join_lines(
        # The sentence of ChatGLM3's training data, PROMPT.md of THUDM/ChatGLM3.
        "Answer the following questions as best as you can. You have access to the following tools:",
        to_json([describe_tool(tool) for tool in tools]),
        "To use a tool, write its name on a line of its own and then, with its parameters:",
        "```python\ntool_call(parameter='value')\n```",
        f"Put {_ASSISTANT} before the name where a text comes before it. Results follow {_OBSERVATION}.",
    )


def _chatglm3_call(call: WriteCall) -> str:
    return f"{call.name}\n```python\ntool_call({write_keywords(call)})\n```"


def _plain_result(name: str, content: str) -> str:
    return content


CHATGLM3: Final = TextDialect(
    name="chatglm3",
    grammar=Grammar({}, line=named_line, silent=frozenset({_ASSISTANT}), trims=True),
    instructions=_chatglm3_instructions,
    call=_chatglm3_call,
    result=_marked_result,
    joiner=f"\n{_ASSISTANT}",
    divider=f"\n{_ASSISTANT}",
    stop=("<|user|>", _OBSERVATION),
)

CHATGLM3_OBSERVATION: Final = replace(
    CHATGLM3, name="chatglm3_observation", result=_plain_result, result_role="observation"
)
