"""Search queries for tools from a conversation, and `find_tools` for the model's own search."""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from beckon_agent.core.json_values import as_mapping
from beckon_agent.core.model_types import Message
from beckon_agent.tools.bm25 import Index, terms_of_text
from beckon_contract.names import sanitise
from beckon_contract.resources.tools import Tool

_MOST_CHARACTERS: Final = 4_000  # of a text's beginning, and of its end: a question is at either
_REPEATED: Final = 0.5
"""BM25's third parameter: a word that is said again and again counts at most this much more than once."""

_NAME = re.compile(r"[A-Za-z](?:[\w.-]*\w)?", re.ASCII)


def query_of_text(text: str, weight: float = 1.0) -> dict[str, float]:
    """Return the terms of a text with their weights."""
    ends = (text[:_MOST_CHARACTERS], text[_MOST_CHARACTERS:][-_MOST_CHARACTERS:])
    counts = Counter(terms_of_text(" ".join(ends)))
    return {term: weight * count * (1 + _REPEATED) / (count + _REPEATED) for term, count in counts.items()}


def named_in(text: str, names: Container[str]) -> Iterator[str]:
    """Yield the tools named in a text.

    A name in the text may have dots or dashes, although a tool's name cannot.
    """
    for match in _NAME.finditer(text):
        word = match.group()
        name = sanitise(word) if "-" in word or "." in word else word
        if name in names:
            yield name


_EARLIER: Final = 0.4  # the weight of the user's message before the last; each one before, as much of that
_EARLIER_MESSAGES: Final = 4
_RESULT: Final = 0.1
_RESULTS: Final = 3
_MOST_SEARCHED: Final = 100_000  # characters of a conversation, its end, in which names are looked for

_FOUND = re.compile(r'"name":\s*"(\w+)"')  # a quote within a description has a backslash before it


def query_of(messages: Sequence[Message]) -> dict[str, float]:
    """Return the weighted search terms of a conversation.

    The user's last message counts most, then the earlier ones, and the last results of tools a little.
    """
    query: dict[str, float] = defaultdict(float)
    for age, message in enumerate(islice(_with_role(messages, "user"), 1 + _EARLIER_MESSAGES)):
        _add_message(query, message, _EARLIER**age)
    results = (one for one in _with_role(messages, "tool") if one.get("name") != FIND_TOOLS.name)
    for message in islice(results, _RESULTS):
        _add_message(query, message, _RESULT)
    return query


def find_mentioned(messages: Sequence[Message], names: Container[str], *, by: Container[str]) -> list[str]:
    """Return the tools named exactly by messages of some roles.

    `by` are the roles. The tool named last comes first.
    """
    mentioned: dict[str, None] = {}
    characters = _MOST_SEARCHED
    for message in reversed(messages):
        if message.get("role") in by and characters > 0:
            text = _text_of(message)[-characters:]
            characters -= len(text)
            mentioned.update(dict.fromkeys(reversed(list(named_in(text, names)))))
    return list(mentioned)


def find_used(messages: Sequence[Message]) -> list[str]:
    """Return the names called by the model, the last first."""
    calls = (call for message in reversed(messages) for call in reversed(_calls_of(message)))
    names = (as_mapping(as_mapping(call).get("function")).get("name") for call in calls)
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))


def names_found(messages: Sequence[Message]) -> list[str]:
    """Return the tool names found by the last calls of `find_tools`. One turn may have several such calls."""
    names: list[str] = []
    for message in reversed(messages):
        if names and message.get("role") != "tool":
            break
        if message.get("role") == "tool" and message.get("name") == FIND_TOOLS.name:
            names = [*_FOUND.findall(_text_of(message)), *names]
    return names


def answer_positions(messages: Sequence[Message]) -> list[int]:
    """Return the number of messages before each answer of the model. The first answer comes first."""
    return [place for place, message in enumerate(messages) if message.get("role") == "assistant"]


def _add_message(query: dict[str, float], message: Message, weight: float) -> None:
    for term, worth in query_of_text(_text_of(message), weight).items():
        query[term] += worth


def _with_role(messages: Sequence[Message], role: str) -> Iterator[Message]:
    return (message for message in reversed(messages) if message.get("role") == role)


def _text_of(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts: Iterable[object] = content if isinstance(content, list) else ()
    texts = (as_mapping(part).get("text") for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str))


def _calls_of(message: Message) -> list[object]:
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else []


_USUAL: Final = 8
_MOST: Final = 20
_ONE_LINE: Final = 160  # characters

FIND_TOOLS: Final = Tool(
    name="find_tools",
    namespace="",
    event_type="find_tools",
    type="dev.beckon.find-tools",
    source=None,
    description=(
        "Search the many tools that are not shown to you, by what they do. Those that are found can be "
        "called from your next turn on. Use it whenever none of your tools fits, before you say that "
        "something cannot be done."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": (
                    "What the tool should do and with what, in a few words that its description may have, "
                    "such as 'cancel pending order'; or the exact name of a tool."
                ),
                "minLength": 1,
                "maxLength": 500,
            },
            "limit": {
                "type": "integer",
                "description": f"How many tools to find; {_USUAL} if left out.",
                "minimum": 1,
                "maximum": _MOST,
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
    parameters_from="",
    idempotent=True,
    read_only=True,
)
"""It belongs to no EventType: the agent answers it itself."""


@dataclass(frozen=True, slots=True)
class Finder:
    """Answers `find_tools` for one request. `room` is the number of found tools that can be declared next."""

    index: Index
    offered: Mapping[str, Tool]
    room: int

    def answer_call(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return the best matches for the model: names and one-line descriptions.

        `arguments` have passed the schema of `FIND_TOOLS`. If they have not, a wrong value counts as left
        out.
        """
        query, limit = arguments.get("query"), arguments.get("limit")
        most = int(limit) if isinstance(limit, int | float) else _USUAL
        names = self.find_names(query if isinstance(query, str) else "", max(1, min(most, _MOST, self.room)))
        if not names:
            note = "No tool fits these words. Try others: what is to be done, and with what."
            return {"tools": [], "note": note}
        tools = [{"name": name, "description": _one_line(self.offered[name])} for name in names]
        return {"tools": tools, "note": "You can call these tools from now on."}

    def find_names(self, query: str, most: int) -> list[str]:
        """Return the tools named in a query, then the best matches. Both are names, at most `most`."""
        names = named_in(query, self.offered)
        fitting = self.index.find_best(query_of_text(query), most, self.offered.__contains__)
        return list(dict.fromkeys([*names, *fitting]))[:most]


def _one_line(tool: Tool) -> str:
    text = " ".join(tool.description.split())
    return text if len(text) <= _ONE_LINE else text[: _ONE_LINE - 1].rstrip() + "…"
