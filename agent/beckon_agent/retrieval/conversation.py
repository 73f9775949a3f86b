"""What a conversation says about the tools that it needs."""

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from beckon_agent.model.types import Message
from beckon_agent.retrieval.finding import FIND_TOOLS
from beckon_agent.retrieval.queries import named_in, query_of_text

_EARLIER: Final = 0.4  # the weight of the user's message before the last; each one before, as much of that
_EARLIER_MESSAGES: Final = 4
_RESULT: Final = 0.1
_RESULTS: Final = 3
_MOST_SEARCHED: Final = 100_000  # characters of a conversation, its end, in which names are looked for

_FOUND = re.compile(r'"name":\s*"(\w+)"')  # a quote within a description has a backslash before it


def query_of(messages: Sequence[Message]) -> dict[str, float]:
    """Return the terms that choose tools, with their weights.

    The user's last message counts most, then the earlier ones, and the last results of tools a little.
    """
    query: dict[str, float] = defaultdict(float)
    for age, message in enumerate(islice(_with_role(messages, "user"), 1 + _EARLIER_MESSAGES)):
        _add(query, message, _EARLIER**age)
    results = (one for one in _with_role(messages, "tool") if one.get("name") != FIND_TOOLS.name)
    for message in islice(results, _RESULTS):
        _add(query, message, _RESULT)
    return query


def mentioned(messages: Sequence[Message], names: Container[str], *, by: Container[str]) -> list[str]:
    """Return the tools that messages of some roles name exactly, the one named last first."""
    named: dict[str, None] = {}
    left = _MOST_SEARCHED
    for message in reversed(messages):
        if message.get("role") in by and left > 0:
            text = _text(message)[-left:]
            left -= len(text)
            named.update(dict.fromkeys(reversed(list(named_in(text, names)))))
    return list(named)


def used(messages: Sequence[Message]) -> list[str]:
    """Return the names that the model has called, the last first."""
    calls = (call for message in reversed(messages) for call in reversed(_calls(message)))
    names = (_mapping(_mapping(call).get("function")).get("name") for call in calls)
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))


def found(messages: Sequence[Message]) -> list[str]:
    """Return what the last calls of `find_tools` have found: of one turn there may be several."""
    names: list[str] = []
    for message in reversed(messages):
        if names and message.get("role") != "tool":
            break
        if message.get("role") == "tool" and message.get("name") == FIND_TOOLS.name:
            names = [*_FOUND.findall(_text(message)), *names]
    return names


def answered(messages: Sequence[Message]) -> list[int]:
    """Return how many messages stood before each answer of the model, the first answer first."""
    return [place for place, message in enumerate(messages) if message.get("role") == "assistant"]


def _add(query: dict[str, float], message: Message, weight: float) -> None:
    for term, worth in query_of_text(_text(message), weight).items():
        query[term] += worth


def _with_role(messages: Sequence[Message], role: str) -> Iterator[Message]:
    return (message for message in reversed(messages) if message.get("role") == role)


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts: Iterable[object] = content if isinstance(content, list) else ()
    texts = (_mapping(part).get("text") for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str))


def _calls(message: Message) -> list[object]:
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else []


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
