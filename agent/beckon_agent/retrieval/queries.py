"""A text as what is looked for: terms with weights, and the names in it."""

import re
from collections import Counter
from collections.abc import Container, Iterator
from typing import Final

from beckon_agent.retrieval.words import terms
from beckon_contract.names import sanitise

_MOST_CHARACTERS: Final = 4_000  # of a text's beginning, and of its end: a question stands at either
_REPEATED: Final = 0.5
"""BM25's third parameter: a word that is said again and again counts at most this much more than once."""

_NAME = re.compile(r"[A-Za-z](?:[\w.-]*\w)?", re.ASCII)


def query_of_text(text: str, weight: float = 1.0) -> dict[str, float]:
    """Return the terms of a text with their weights."""
    ends = (text[:_MOST_CHARACTERS], text[_MOST_CHARACTERS:][-_MOST_CHARACTERS:])
    counts = Counter(terms(" ".join(ends)))
    return {term: weight * count * (1 + _REPEATED) / (count + _REPEATED) for term, count in counts.items()}


def named_in(text: str, names: Container[str]) -> Iterator[str]:
    """Yield the tools that a text names, also where dots or dashes stand that a tool's name cannot have."""
    for match in _NAME.finditer(text):
        word = match.group()
        name = sanitise(word) if "-" in word or "." in word else word
        if name in names:
            yield name
