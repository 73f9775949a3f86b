"""The choice of tools for a question, by their words in common."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from beckon_contract.names import RESERVED
from beckon_demo.fill import has_value_for
from beckon_demo.tools import Tool
from beckon_demo.words import question_words, related, words

_PARTS = re.compile(r"\s+and\s+(?:also\s+|then\s+)?|;\s*|(?<=[?!])\s+|,\s*then\s+", re.IGNORECASE)
_IN_NAME: Final = 3.0
_IN_PARAMETER_NAME: Final = 2.0
_IN_DESCRIPTION: Final = 1.0
_IN_PARAMETER: Final = 1.0
_ENOUGH: Final = 2.0


@dataclass(frozen=True, slots=True)
class Choice:
    """A tool, and its part of the question."""

    tool: Tool
    text: str


def choose(question: str, tools: Sequence[Tool]) -> list[Choice]:
    """Return the tools for a question, in its order.

    They are several if the question has several parts.
    """
    choices: list[Choice] = []
    for part in filter(None, (part.strip() for part in _PARTS.split(question))):
        tool = best(part, tools)
        if tool is not None:
            choices.append(Choice(tool, part))
        elif choices and has_value_for(choices[-1].tool, part):  # "the weather in Paris and Rome"
            choices.append(Choice(choices[-1].tool, part))
        elif choices:
            choices[-1] = replace(choices[-1], text=f"{choices[-1].text} and {part}")
    if not choices:
        tool = best(question, tools)
        return [Choice(tool, question)] if tool else []
    return choices


def best(text: str, tools: Sequence[Tool]) -> Tool | None:
    """Return the best fitting tool, the first of equals, or None.

    None if no tool fits well enough. The agent's own tools are never chosen: they are for models that
    understand what they lack.
    """
    wanted = question_words(text)
    scored = [(_score(wanted, tool), tool) for tool in tools if tool.name not in RESERVED]
    score, tool = max(scored, key=lambda pair: pair[0], default=(0.0, None))
    return tool if score >= _ENOUGH else None


def _score(wanted: set[str], tool: Tool) -> float:
    places = (
        (_IN_NAME, words(tool.name)),
        (_IN_PARAMETER_NAME, [word for one in tool.parameters for word in words(one.name)]),
        (_IN_DESCRIPTION, words(tool.description)),
        (_IN_PARAMETER, [word for one in tool.parameters for word in one.hints]),
    )
    return sum(next((weight for weight, here in places if related(word, here)), 0.0) for word in wanted)
