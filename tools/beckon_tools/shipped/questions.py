"""Plain questions about the elements as SQL, by rules: deterministic, and honest about its limits.

Each rule takes the words it understands out of the question. What is left at the end must be
words that carry nothing; otherwise the question is refused rather than half answered. Literals in
the SQL are numbers and words of our own vocabulary, never text of the question.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from beckon_tools.shipped.elements import TABLE
from beckon_tools.shipped.vocabulary import (
    ADJECTIVES,
    DIMENSIONS,
    FACTS,
    FILTERS,
    MEASURES,
    NAMES,
    NUMBER_WORDS,
    PLAIN_ADJECTIVES,
    SILENT,
    SYMBOLS,
)

EXAMPLES = (
    "Which metal has the highest melting point?",
    "How many gases are there in each period?",
    "the 5 densest elements discovered after 1900",
    "average density of the halogens",
    "boiling point of gold",
)

_NUMBER = r"(-?\d+(?:\.\d+)?)"
_COUNT = r"(\d{1,3}|" + "|".join(NUMBER_WORDS) + ")"
_NAME = "(" + "|".join(sorted(NAMES, key=len, reverse=True)) + ")"
_MEASURE = "(?:" + "|".join(f"(?P<{column}>{words})" for column, words in MEASURES.items()) + ")"
_COMPARISONS: Mapping[str, str] = {
    r"at least|>=|no less than": ">=",
    r"at most|<=|no more than|up to": "<=",
    r"above|over|(?:greater|more|higher|larger) than|exceeding|>|after": ">",
    r"below|under|(?:less|lower|smaller|fewer) than|<|before": "<",
    r"equal to|equals|exactly|of|=": "=",
}
_UNIT = r"\s*(?P<unit>°? ?[ckf]\b|degrees? (?:celsius|fahrenheit|c|f)\b|kelvins?\b|celsius\b|fahrenheit\b)?"


class NotUnderstood(ValueError):
    """A question outside the rules; the message names the words that stand in the way."""


@dataclass(slots=True)
class _QuestionReading:
    """What has been understood, and the rest of the question."""

    text: str
    where: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    aggregate: str | None = None
    by: str | None = None
    order: tuple[str, str] | None = None
    limit: int | None = None

    def take(self, pattern: str) -> re.Match[str] | None:
        """Find a pattern between word boundaries and take it out of the text."""
        match = re.search(rf"(?<![\w]){pattern}(?![\w])", self.text)
        if match:
            self.text = f"{self.text[: match.start()]} {self.text[match.end() :]}"
        return match

    def mention(self, column: str) -> None:
        """Note a column that the answer should show."""
        if column not in self.columns:
            self.columns.append(column)


def translate(question: str) -> str:
    """Return the SELECT that answers the question; raise `NotUnderstood`."""
    reading = _QuestionReading(_normalise(question))
    for rule in _RULES:
        rule(reading)
    _check_rest(reading)
    return _write(reading)


def _normalise(question: str) -> str:
    named = re.sub(
        r"\b(of|symbol|element|than|and)\s+([A-Z][a-z]?)\b",
        lambda match: f"{match[1]} {SYMBOLS.get(match[2], match[2])}",
        question,
    )
    text = re.sub(r"(?<=\d),(?=\d{3})", "", named.lower())
    text = re.sub(r"[?!;:\"“”()]|[.,](?!\d)|'s\b|’s\b", " ", text)
    return " ".join(text.split())


def _take_limit(reading: _QuestionReading) -> None:
    superlative = r"(?:[a-z]+est\b|most\b|least\b|first\b|last\b|newest\b|(?:[a-z-]+ ){1,3}(?:with|by)\b)"
    match = reading.take(rf"(?:top|first|last) {_COUNT}") or reading.take(rf"{_COUNT}(?= {superlative})")
    if match:
        reading.limit = NUMBER_WORDS.get(match[1]) or int(match[1])


def _take_comparisons(reading: _QuestionReading) -> None:
    for words, sign in _COMPARISONS.items():
        pattern = rf"{_MEASURE}(?: is| are| was| of)? (?:{words}) ?{_NUMBER}{_UNIT}"
        while match := reading.take(pattern):
            column, value = _column(match), _kelvin(match)
            reading.where.append(f"{column} {sign} {value}")
            reading.mention(column)
    while match := reading.take(rf"{_MEASURE}(?: is| are)? between {_NUMBER} and {_NUMBER}"):
        column = _column(match)
        low, high = match.groups()[-2:]
        reading.where.append(f"{column} BETWEEN {low} AND {high}")
        reading.mention(column)


def _take_melting(reading: _QuestionReading) -> None:
    """Read "that melt below 300 K", "boils above 0 °C"."""
    for verb, column in (("melts?", "melting_point_k"), ("boils?", "boiling_point_k")):
        for words, sign in _COMPARISONS.items():
            match = reading.take(rf"{verb} (?:at )?(?:{words}) ?{_NUMBER}{_UNIT}")
            if match:
                reading.where.append(f"{column} {sign} {_kelvin(match)}")
                reading.mention(column)


def _take_comparatives(reading: _QuestionReading) -> None:
    """Read "heavier than 200" and "denser than iron"."""
    forms = {rf"{stem}er": (column, most) for stem, (column, most) in ADJECTIVES.items()}
    for adjective, column in PLAIN_ADJECTIVES.items():
        forms[f"more {adjective}"] = (column, "DESC")
        forms[f"less {adjective}"] = (column, "ASC")
    for words, (column, most) in forms.items():
        match = reading.take(rf"(?:is |are )?{words} than (?:{_NUMBER}|{_NAME})")
        if match is None:
            continue
        reading.mention(column)
        if match[2] and re.search(rf"\b{_NAME}\b", reading.text):
            reading.names.append(NAMES[match[2]])  # "is iron denser than lead": show both
        else:
            value = match[1] or f"({_select([column], [f'name = {NAMES[match[2]]!r}'])})"
            reading.where.append(f"{column} {'>' if most == 'DESC' else '<'} {value}")


def _take_discovery(reading: _QuestionReading) -> None:
    signs = {"before|until": "<", "after|since": ">", "in": "="}
    if match := reading.take(r"(?:discovered )?(?:in|during) the (\d\d)[a-z]{2} century"):
        first = (int(match[1]) - 1) * 100
        reading.where.append(f"discovered BETWEEN {first + 1} AND {first + 100}")
    elif match := reading.take(r"(?:discovered )?(?:in|during) the (\d{3})0s"):
        first = int(match[1]) * 10
        reading.where.append(
            f"discovered BETWEEN {first} AND {first + (99 if match[1].endswith('0') else 9)}"
        )
    elif match := reading.take(r"(?:discovered )?between (\d{4}) and (\d{4})"):
        reading.where.append(f"discovered BETWEEN {match[1]} AND {match[2]}")
    for words, sign in signs.items():
        if match := reading.take(rf"(?:discovered )?(?:{words}) (?:the year )?(\d{{4}})"):
            reading.where.append(f"discovered {sign} {match[1]}")
    if any(condition.startswith("discovered") for condition in reading.where):
        reading.mention("discovered")


def _take_places(reading: _QuestionReading) -> None:
    places = {
        "group_number": r"(?:in )?group (?:number )?(\d+)",
        "period": r"(?:in )?(?:period|row) (?:number )?(\d+)",
        "number": r"(?:with )?(?:the )?(?:atomic number|element number|element) (\d+)",
    }
    for column, pattern in places.items():
        if match := reading.take(pattern):
            reading.where.append(f"{column} = {match[1]}")
    if match := reading.take(r"(?:in )?(?:the )?([spdf])[- ]block") or reading.take(r"block ([spdf])"):
        reading.where.append(f"block = '{match[1]}'")


def _take_grouping(reading: _QuestionReading) -> None:
    each = r"(?:(?:in|for|of|within|from) (?:each|every)|per|each|every|grouped by|by)"
    for column, words in DIMENSIONS.items():
        if reading.take(rf"{each} (?:{words})"):
            reading.by = column


def _take_aggregate(reading: _QuestionReading) -> None:
    if reading.take(r"how many|(?:the )?(?:number|count) of(?! protons)|count"):
        reading.aggregate = "COUNT"
    elif reading.take(r"average|mean"):
        reading.aggregate = "AVG"
    elif reading.take(r"total|sum of(?: the)?"):
        reading.aggregate = "SUM"


def _take_superlative(reading: _QuestionReading) -> None:
    found = _named_superlative(reading) or _measured_superlative(reading)
    if found:
        reading.order = found
        reading.mention(found[0])


def _named_superlative(reading: _QuestionReading) -> tuple[str, str] | None:
    for stem, order in ADJECTIVES.items():
        if reading.take(f"{stem}est"):
            return order
    for adjective, column in PLAIN_ADJECTIVES.items():
        if match := reading.take(rf"(most|least) {adjective}"):
            return column, "DESC" if match[1] == "most" else "ASC"
    if reading.take(r"(?:earliest|oldest|first)(?:(?: to be)? (?:discovered|discovery|found))?"):
        return "discovered", "ASC"
    if reading.take(
        r"(?:latest|newest|most recent(?:ly)?|last)(?:(?: to be)? (?:discovered|discovery|found))?"
    ):
        return "discovered", "DESC"
    return None


def _measured_superlative(reading: _QuestionReading) -> tuple[str, str] | None:
    most = r"(?:highest|largest|greatest|biggest|maximum|max|most)"
    least = r"(?:lowest|smallest|minimum|min|least)"
    for words, direction in ((most, "DESC"), (least, "ASC")):
        if match := reading.take(rf"{words} {_MEASURE}"):
            return _column(match), direction
    if match := reading.take(rf"(?:sorted|ordered|ranked)? ?by {_MEASURE}"):
        return _column(match), "ASC" if reading.take("ascending") else "DESC"
    return None


def _take_filters(reading: _QuestionReading) -> None:
    for words, condition in FILTERS.items():
        if reading.take(rf"(?:{words})"):
            reading.where.append(condition)


def _take_names(reading: _QuestionReading) -> None:
    while match := reading.take(_NAME):
        reading.names.append(NAMES[match[1]])


def _take_mentions(reading: _QuestionReading) -> None:
    if reading.take(r"melts?"):
        reading.mention("melting_point_k")
    if reading.take(r"boils?"):
        reading.mention("boiling_point_k")
    for words, column in {**_by_words(MEASURES), **_by_words(FACTS)}.items():
        if reading.take(rf"(?:{words})"):
            reading.mention(column)
    for stem, (column, _most) in ADJECTIVES.items():
        if reading.names and reading.take(f"{stem}er"):
            reading.mention(column)


_RULES = (
    _take_limit,
    _take_comparisons,
    _take_melting,
    _take_comparatives,
    _take_discovery,
    _take_places,
    _take_grouping,
    _take_aggregate,
    _take_superlative,
    _take_filters,
    _take_names,
    _take_mentions,
)


def _check_rest(reading: _QuestionReading) -> None:
    unknown = [word for word in reading.text.split() if not SILENT.fullmatch(word)]
    if unknown:
        raise NotUnderstood(f"the words {', '.join(map(repr, unknown[:5]))} are not known here")
    wanted = reading.where or reading.names or reading.columns or reading.order or reading.aggregate
    if not wanted:
        raise NotUnderstood("it names no element, family or property")
    if reading.aggregate in ("AVG", "SUM") and not reading.columns:
        raise NotUnderstood("it does not say of which property")


def _write(reading: _QuestionReading) -> str:
    if reading.names:
        quoted = ", ".join(f"'{name}'" for name in dict.fromkeys(reading.names))
        reading.where.append(f"name IN ({quoted})")
    if reading.aggregate:
        return _write_aggregate(reading)
    if reading.order:
        return _write_superlative(reading, *reading.order)
    shown = reading.columns or (["*"] if len(reading.names) == 1 else ["category"])
    columns = shown if shown == ["*"] else ["name", "symbol", *shown]
    order = f"{reading.columns[0]} DESC" if len(reading.names) > 1 and reading.columns else "number"
    limit = [f"LIMIT {reading.limit}"] if reading.limit else []
    return _select(columns, reading.where, "ORDER BY", order, *limit)


def _write_aggregate(reading: _QuestionReading) -> str:
    column = reading.columns[-1] if reading.columns else ""
    what = f"ROUND({reading.aggregate}({column}), 4) AS {column}"
    if reading.aggregate == "COUNT":
        what = "COUNT(*) AS count"
    return _grouped(reading.by, what, reading.where) if reading.by else _select([what], reading.where)


def _write_superlative(reading: _QuestionReading, column: str, direction: str) -> str:
    where = [*reading.where, f"{column} IS NOT NULL"]
    if reading.by is not None:
        # SQLite takes the other columns of a MAX or MIN query from the row that has it.
        extreme = "MAX" if direction == "DESC" else "MIN"
        return _grouped(reading.by, f"name, {extreme}({column}) AS {column}", where)
    shown = ["name", "symbol", *reading.columns]
    return _select(shown, where, "ORDER BY", column, direction, "LIMIT", str(reading.limit or 1))


def _grouped(by: str, what: str, where: Iterable[str]) -> str:
    return _select([by, what], [*where, f"{by} IS NOT NULL"], "GROUP BY", by, "ORDER BY", by)


def _select(columns: Iterable[str], where: Iterable[str], *tail: str) -> str:
    parts = ["SELECT", ", ".join(dict.fromkeys(columns)), "FROM", TABLE]
    if conditions := list(dict.fromkeys(where)):
        parts += ["WHERE", " AND ".join(conditions)]
    return " ".join([*parts, *tail])


def _by_words(columns: Mapping[str, str]) -> dict[str, str]:
    return {words: column for column, words in columns.items()}


def _column(match: re.Match[str]) -> str:
    return next(column for column in MEASURES if match[column] is not None)


def _kelvin(match: re.Match[str]) -> str:
    """Return the number of a comparison, a temperature in kelvin."""
    unit = (match["unit"] or "").strip(" °").removeprefix("degrees ").removeprefix("degree ")
    value = float(match.groups()[-2])
    if unit.startswith("c"):
        value += 273.15
    elif unit.startswith("f"):
        value = (value - 32) / 1.8 + 273.15
    return f"{value:.10g}"
