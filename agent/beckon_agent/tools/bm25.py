"""A BM25F index of tools: terms, fields, and scores with a share for tools of one service.

The score of a term in a tool is idf · f / (k + f), where f adds up the occurrences in all fields, each
weighted and divided by its length beside the mean (Robertson and Zaragoza, "The Probabilistic Relevance
Framework", 2009). It depends on nothing in the query, so a query only adds stored numbers.

A task takes more than the tool that its words name: to cancel an order, look it up first. So a tool
gets a share of the best score among the other tools of its family, the less the larger the family is.
An index is made once for each catalogue, beside the requests.
"""

import asyncio
import heapq
import math
import re
import threading
import unicodedata
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

from beckon_contract.resources.tools import Tool

_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Letters of scripts that put no space between words: Thai to Khmer, Kana, Han."""

_FIRST_UNSPACED: Final = _UNSPACED[0]

_WORD = re.compile(rf"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+|[{_UNSPACED}]+|[^\W\d_A-Za-z{_UNSPACED}]+")
_IN_PAIRS = re.compile(f"[{_UNSPACED}]")

_LONGEST: Final = 40  # characters; what is longer is a key or encoded data, and no word

_STOP: Final = frozenset(
    """
    about after all also am an and any are as at be been before but by can could did do does each for from get
    give given had has have he help her here him his how if in into is it its just let like may me might must
    my need no not of off on one or our out over please she should so some such tell than that the their them
    then there these they this those to too up us use used using want was we were what when where whether
    which who whom whose why will with would you your
    """.split()  # noqa: SIM905 -- a list of words reads best as text
)
"""Words of every other text, which distinguish no tools."""

_ONE_AT_A_TIME = threading.Lock()  # a stemmer keeps the word it works on in itself


def terms_of_text(text: str) -> list[str]:
    """Return the terms of a text in their order, each as often as it occurs."""
    if not text.isascii():  # ﬁ is fi, é is e
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(char for char in decomposed if not unicodedata.combining(char))
    terms: list[str] = []
    for word in _WORD.findall(text):
        if word[0] >= _FIRST_UNSPACED and _IN_PAIRS.match(word):  # overlapping pairs do for words
            terms.extend(map("".join, pairwise(word)) if len(word) > 1 else word)
        elif len(word) <= _LONGEST:
            terms.extend(_terms_of(word))
    return terms


@lru_cache(maxsize=32_768)
def _terms_of(written: str) -> tuple[str, ...]:
    word = written.lower()
    if word in _STOP or (len(word) < 2 and word.isascii()):
        return ()
    letters = word.rstrip("0123456789")
    if not letters or letters == word:
        return (_stem_word(word),)
    return (word, _stem_word(letters)) if len(letters) > 1 else (word,)  # "side1" is a side


def _stem_word(word: str) -> str:
    with _ONE_AT_A_TIME:
        stem: str = _make_stemmer().stemWord(word)
    return stem


@cache
def _make_stemmer() -> Any:
    # Imported late: a megabyte that a service with few tools need not spend.
    import Stemmer  # type: ignore[import-not-found]  # noqa: PLC0415  # an extension module without stubs

    return Stemmer.Stemmer("english")


_DEEPEST: Final = 8
_MOST_PROPERTIES: Final = 200
_MOST_CHARACTERS: Final = 4_000  # of a description; whole manuals would make every index slow
_MOST_EXPLAINED: Final = 8_000  # characters, of all parameters together
_PART_OF: Final = "app.kubernetes.io/part-of"


class Terms(NamedTuple):
    """The terms of a tool, by field."""

    name: list[str]
    description: list[str]
    parameters: list[str]
    explanations: list[str]


def terms_of(tool: Tool) -> Terms:
    """Return the terms of a tool, by field.

    They are those of its name, its description, its parameters' names, and their explanations.
    """
    names: list[str] = []
    texts: list[str] = []
    for number, (name, schema) in enumerate(_iterate_properties(tool.parameters)):
        if number == _MOST_PROPERTIES:
            break
        names.append(name)
        texts.extend(_iterate_texts(schema))
    return Terms(
        terms_of_text(_plain_name(tool)),
        terms_of_text(tool.description[:_MOST_CHARACTERS]),
        terms_of_text(" ".join(names)),
        terms_of_text(" ".join(texts)[:_MOST_EXPLAINED]),
    )


def family_of(tool: Tool) -> str:
    """Return the family of a tool, common to the tools of one service.

    That is the label `app.kubernetes.io/part-of`, or else the namespace and the CloudEvents type without its
    last segment: the specification asks for a prefix that names who defines the event.
    """
    return tool.labels.get(_PART_OF) or f"{tool.namespace} {tool.type.rpartition('.')[0]}"


def _plain_name(tool: Tool) -> str:
    """Return a tool's name without its hash, if it has one. The hash says nothing about the tool."""
    return tool.name.rpartition("__")[0] or tool.name


def _iterate_properties(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the properties of an object, and those of the objects in it."""
    definitions = schema.get("$defs")
    return _walk_schema(schema, definitions if isinstance(definitions, Mapping) else {}, frozenset(), 0)


def _walk_schema(
    schema: object, definitions: Mapping[str, Any], seen: frozenset[str], depth: int
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return
    target = str(schema.get("$ref", "")).rpartition("/")[2]
    if target in definitions and target not in seen:
        yield from _walk_schema(definitions[target], definitions, seen | {target}, depth + 1)
    properties = schema.get("properties")
    for name, one in properties.items() if isinstance(properties, Mapping) else ():
        yield name, one if isinstance(one, Mapping) else {}
        yield from _walk_schema(one, definitions, seen, depth + 1)
    for one in _iterate_parts(schema):
        yield from _walk_schema(one, definitions, seen, depth + 1)


def _iterate_parts(schema: Mapping[str, Any]) -> Iterator[object]:
    yield schema.get("items")
    yield schema.get("additionalProperties")
    for keyword in ("anyOf", "oneOf", "allOf"):
        several = schema.get(keyword)
        yield from several if isinstance(several, list) else ()


def _iterate_texts(schema: Mapping[str, Any]) -> Iterator[str]:
    description, values = schema.get("description"), schema.get("enum")
    if isinstance(description, str):
        yield description[:_MOST_CHARACTERS]
    yield from (value for value in values if isinstance(value, str)) if isinstance(values, list) else ()


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
    """Ranks the tools of one catalogue; never changed after its construction."""

    def __init__(
        self, tools: Mapping[str, Tool], *, share: float = _SHARE, terms: Sequence[Terms] | None = None
    ) -> None:
        """Build the index; known `terms` are given in the tools' order."""
        self._names = list(tools)
        self._share = share
        self._tools: dict[str, array[int]] = {}
        self._scores: dict[str, array[float]] = {}
        self._families = [family_of(tool) for tool in tools.values()]
        self._members: dict[str, list[int]] = defaultdict(list)
        for number, family in enumerate(self._families):
            self._members[family].append(number)
        self._store_scores([terms_of(tool) for tool in tools.values()] if terms is None else terms)

    def find_best(
        self, query: Mapping[str, float], most: int, may: Callable[[str], bool] = lambda _: True
    ) -> list[str]:
        """Return at most `most` names of matching tools, the best first.

        `query` holds terms with their weights; tools that `may` refuses are left out. Equal scores keep
        the order of the catalogue.
        """
        scores = self._with_families(self._match_scores(query))
        allowed = ((score, -tool) for tool, score in scores.items() if score > 0 and may(self._names[tool]))
        return [self._names[-tool] for _, tool in heapq.nlargest(most, allowed)]

    def _store_scores(self, documents: Sequence[Terms]) -> None:
        """Compute the score of every term in every tool."""
        means = [sum(map(len, column)) / len(column) or 1.0 for column in zip(*documents, strict=True)]
        postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, document in enumerate(documents):
            for term, frequency in _term_frequencies(document, means).items():
                postings[term].append((number, frequency))
        for term, entries in postings.items():
            rarity = math.log(1 + (len(documents) - len(entries) + 0.5) / (len(entries) + 0.5))
            self._tools[term] = array("I", [number for number, _ in entries])
            self._scores[term] = array("f", [rarity * f / (_SATURATION + f) for _, f in entries])

    def _match_scores(self, query: Mapping[str, float]) -> dict[int, float]:
        """Return the scores of the tools with a term of the query."""
        known = [(weight, term) for term, weight in query.items() if term in self._tools]
        heaviest = heapq.nlargest(_QUERY_TERMS, known, key=self._highest_score)
        scores = [0.0] * len(self._names)
        for weight, term in heaviest:
            for tool, score in zip(self._tools[term], self._scores[term], strict=True):
                scores[tool] += weight * score
        return {tool: score for tool, score in enumerate(scores) if score > 0}

    def _highest_score(self, weighted: tuple[float, str]) -> tuple[float, str]:
        weight, term = weighted
        return weight * math.log(1 + len(self._names) / len(self._tools[term])), term

    def _with_families(self, scores: dict[int, float]) -> dict[int, float]:
        """Return the scores with each tool's share of its family's best score."""
        leaders = heapq.nlargest(_LEADERS, scores, key=scores.__getitem__)
        lifted = dict(scores)
        for family, first in _best_of_families(leaders, self._families).items():
            members = self._members[family]
            if len(members) > _LARGEST_FAMILY:
                continue
            share = self._share * min(1.0, _SERVICE / len(members))
            second = max((scores.get(member, 0.0) for member in members if member != first), default=0.0)
            for member in members:
                best_other = second if member == first else scores[first]
                lifted[member] = scores.get(member, 0.0) + share * best_other
        return lifted


def _term_frequencies(document: Terms, means: Iterable[float]) -> dict[str, float]:
    """Return how often each term occurs, over all fields, by their weights and lengths."""
    frequencies: dict[str, float] = defaultdict(float)
    for field, mean, weight, length in zip(document, means, _WEIGHTS, _LENGTH, strict=True):
        worth = weight / (1 - length + length * len(field) / mean)
        for term, count in Counter(field).items():
            frequencies[term] += worth * count
    return frequencies


def _best_of_families(leaders: Iterable[int], families: list[str]) -> dict[str, int]:
    """Return the best tool of each family among the leaders."""
    firsts: dict[str, int] = {}
    for tool in leaders:
        firsts.setdefault(families[tool], tool)
    return firsts


_SMALL: Final = 256
"""Up to so many tools an index takes some hundredths of a second, and no request has to use an old one."""


class Indexes:
    """The index of a catalogue, rebuilt after a change.

    Requests wait for the first one. After that they use the last one while a thread builds the next, which
    takes some tenths of a second with thousands of tools. Until then a new tool is found by its name only,
    and a changed one by its old text.
    """

    def __init__(self) -> None:
        self._latest: tuple[Mapping[str, Tool], Index] | None = None
        self._terms: dict[str, tuple[Tool, Terms]] = {}
        self._making: asyncio.Task[Index] | None = None

    async def index_of(self, tools: Mapping[str, Tool]) -> Index:
        """Return the index of a catalogue, or of the one before it for a moment."""
        latest = self._latest
        if latest is not None and _same_tools(latest[0], tools):
            return latest[1]
        if self._making is None:
            self._making = asyncio.create_task(self._make_index(tools))
        if latest is not None and len(tools) > _SMALL:
            return latest[1]
        index = await asyncio.shield(self._making)
        return index if self._is_of(tools) else await self.index_of(tools)

    def _is_of(self, tools: Mapping[str, Tool]) -> bool:
        return self._latest is not None and _same_tools(self._latest[0], tools)

    async def _make_index(self, tools: Mapping[str, Tool]) -> Index:
        try:
            index = await asyncio.to_thread(self._index_tools, tools)
            self._latest = tools, index
            return index
        finally:
            self._making = None

    def _index_tools(self, tools: Mapping[str, Tool]) -> Index:
        """Return an index; terms of unchanged tools are reused.

        Reading the tools is half of the work, and most of them have not changed.
        """
        known = self._terms
        read = {}
        for name, tool in tools.items():
            before = known.get(name)
            read[name] = before if before is not None and before[0] is tool else (tool, terms_of(tool))
        self._terms = read
        return Index(tools, terms=[terms for _, terms in read.values()])


def _same_tools(before: Mapping[str, Tool], now: Mapping[str, Tool]) -> bool:
    """True if two catalogues hold the same tools. An unchanged tool stays the same object."""
    if before is now:
        return True
    return len(before) == len(now) and all(before.get(name) is tool for name, tool in now.items())
