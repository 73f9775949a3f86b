"""An index of tools: BM25 with fields (BM25F), computed once, and a share for tools of the same service.

The score of a term in a tool is idf · f / (k + f), where f adds up the occurrences in all fields, each
weighted and divided by its length beside the mean (Robertson and Zaragoza, "The Probabilistic Relevance
Framework", 2009). It depends on nothing in the query, so a query only adds stored numbers.

A task takes more than the tool that its words name: whoever cancels an order looks it up first. So a tool
gets a share of the best score among the other tools of its family, the less the larger the family is.
"""

import heapq
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from beckon_agent.retrieval.fields import Terms, family_of, terms_of
from beckon_contract.tools import Tool

# Name, description, parameters' names, their explanations.
_WEIGHTS: Final = (3.0, 2.0, 1.0, 0.5)
_LENGTH: Final = (0.5, 0.75, 0.75, 0.75)
_SATURATION: Final = 1.2

_SHARE: Final = 0.4
_SERVICE: Final = 16  # tools: up to here a family gets its whole share
_LARGEST_FAMILY: Final = 256  # beyond, the share is too small to change anything
_LEADERS: Final = 100  # how many of the best tools lift their families

_QUERY_TERMS: Final = 64
"""The rarest and heaviest terms of a query count; more cost time and say nothing new."""


class Index:
    """Ranks the tools of one catalogue; it is never changed after it was built."""

    def __init__(
        self, tools: Mapping[str, Tool], *, share: float = _SHARE, terms: Sequence[Terms] | None = None
    ) -> None:
        """`terms` are those of the tools in their order, where they are known already."""
        self._names = list(tools)
        self._share = share
        self._tools: dict[str, array[int]] = {}
        self._scores: dict[str, array[float]] = {}
        self._families = [family_of(tool) for tool in tools.values()]
        self._members: dict[str, list[int]] = defaultdict(list)
        for number, family in enumerate(self._families):
            self._members[family].append(number)
        self._store([terms_of(tool) for tool in tools.values()] if terms is None else terms)

    def best(
        self, query: Mapping[str, float], most: int, may: Callable[[str], bool] = lambda _: True
    ) -> list[str]:
        """Return at most `most` names of tools, the best first, that have anything of the query.

        `query` holds terms with their weights; tools that `may` refuses are left out. Equal scores keep
        the order of the catalogue.
        """
        scores = self._with_families(self._matches(query))
        allowed = ((score, -tool) for tool, score in scores.items() if score > 0 and may(self._names[tool]))
        return [self._names[-tool] for _, tool in heapq.nlargest(most, allowed)]

    def _store(self, documents: Sequence[Terms]) -> None:
        """Compute the score of every term in every tool."""
        means = [sum(map(len, column)) / len(column) or 1.0 for column in zip(*documents, strict=True)]
        postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, document in enumerate(documents):
            for term, frequency in _frequencies(document, means).items():
                postings[term].append((number, frequency))
        for term, found in postings.items():
            rarity = math.log(1 + (len(documents) - len(found) + 0.5) / (len(found) + 0.5))
            self._tools[term] = array("I", [number for number, _ in found])
            self._scores[term] = array("f", [rarity * f / (_SATURATION + f) for _, f in found])

    def _matches(self, query: Mapping[str, float]) -> dict[int, float]:
        """Return the scores of the tools that have a term of the query."""
        known = [(weight, term) for term, weight in query.items() if term in self._tools]
        heaviest = heapq.nlargest(_QUERY_TERMS, known, key=self._most_that_it_gives)
        scores = [0.0] * len(self._names)
        for weight, term in heaviest:
            for tool, score in zip(self._tools[term], self._scores[term], strict=True):
                scores[tool] += weight * score
        return {tool: score for tool, score in enumerate(scores) if score > 0}

    def _most_that_it_gives(self, weighted: tuple[float, str]) -> tuple[float, str]:
        weight, term = weighted
        return weight * math.log(1 + len(self._names) / len(self._tools[term])), term

    def _with_families(self, scores: dict[int, float]) -> dict[int, float]:
        """Return the scores with the share that each tool has in its family's best."""
        leaders = heapq.nlargest(_LEADERS, scores, key=scores.__getitem__)
        lifted = dict(scores)
        for family, first in _firsts(leaders, self._families).items():
            members = self._members[family]
            if len(members) > _LARGEST_FAMILY:
                continue
            share = self._share * min(1.0, _SERVICE / len(members))
            second = max((scores.get(member, 0.0) for member in members if member != first), default=0.0)
            for member in members:
                best_other = second if member == first else scores[first]
                lifted[member] = scores.get(member, 0.0) + share * best_other
        return lifted


def _frequencies(document: Terms, means: Iterable[float]) -> dict[str, float]:
    """Return how often each term occurs, over all fields, by their weights and lengths."""
    frequencies: dict[str, float] = defaultdict(float)
    for field, mean, weight, length in zip(document, means, _WEIGHTS, _LENGTH, strict=True):
        worth = weight / (1 - length + length * len(field) / mean)
        for term, count in Counter(field).items():
            frequencies[term] += worth * count
    return frequencies


def _firsts(leaders: Iterable[int], families: list[str]) -> dict[str, int]:
    """Return the best tool of each family that has one among the leaders."""
    firsts: dict[str, int] = {}
    for tool in leaders:
        firsts.setdefault(families[tool], tool)
    return firsts
