"""ChatGLM3: the tool's name on a line and `tool_call(k='v')` in a Python fence below it.

The model was trained with the role `observation` for results. OpenAI-compatible servers
refuse roles that they do not know, so results go in a user's message marked with the model's
own token; `chatglm3_observation` sends the role, for servers that take it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from beckon_agent.dialects.glm import named_line
from beckon_agent.dialects.jsontext import dump
from beckon_agent.dialects.pythonic import keywords
from beckon_agent.dialects.reader import Grammar
from beckon_agent.dialects.rendering import Call, TextDialect, described, lines
from beckon_agent.model.types import Declaration

ASSISTANT: Final = "<|assistant|>"
OBSERVATION: Final = "<|observation|>"


def _instructions(tools: Sequence[Declaration]) -> str:
    return lines(
        # The sentence of ChatGLM3's training data, PROMPT.md of THUDM/ChatGLM3.
        "Answer the following questions as best as you can. You have access to the following tools:",
        dump([described(tool) for tool in tools]),
        "To use a tool, write its name on a line of its own and then, with its parameters:",
        "```python\ntool_call(parameter='value')\n```",
        f"Put {ASSISTANT} before the name where a text stands in front. Results follow {OBSERVATION}.",
    )


def _call(call: Call) -> str:
    return f"{call.name}\n```python\ntool_call({keywords(call)})\n```"


def _marked_result(name: str, content: str) -> str:
    return f"{OBSERVATION}\n{content}"


def _plain_result(name: str, content: str) -> str:
    return content


CHATGLM3: Final = TextDialect(
    name="chatglm3",
    grammar=Grammar({}, line=named_line, silent=frozenset({ASSISTANT}), trims=True),
    instructions=_instructions,
    call=_call,
    result=_marked_result,
    joiner=f"\n{ASSISTANT}",
    divider=f"\n{ASSISTANT}",
    stop=("<|user|>", OBSERVATION),
)

CHATGLM3_OBSERVATION: Final = replace(
    CHATGLM3, name="chatglm3_observation", result=_plain_result, result_role="observation"
)
