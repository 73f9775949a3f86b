"""Words of questions and of tools, and a simple comparison.

It needs no grammar: only a stop list and a few hints.
"""

import re
from collections.abc import Iterable
from typing import Final

STOP: Final = frozenset({
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by",
    "can", "could", "current", "did", "do", "does", "e", "for", "from", "g", "get", "give", "given",
    "had", "has", "have", "he", "her", "hey", "hi", "him", "his", "how", "i", "if", "in", "into", "is",
    "it", "its", "just", "let", "like", "may", "me", "might", "my", "need", "no", "not", "now", "of",
    "off", "on", "one", "or", "our", "out", "please", "she", "should", "so", "some", "tell", "that",
    "the", "their", "them", "then", "there", "these", "they", "this", "those", "to", "too", "up", "us",
    "use", "using", "value", "want", "was", "we", "were", "what", "whats", "when", "where", "which",
    "who", "why", "will", "with", "would", "you", "your",
})  # fmt: skip
"""Words that choose no tool."""

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_STEM: Final = 5
"""Letters in common from which on two words count as forms of one (calculate, calculator)."""

_NUMBER = r"(?:[-(]\s*)*(?:(?:sqrt|abs|log2?|ln|exp|sin|cos|tan)\s*\(\s*[-(]*\s*)?\d+(?:\.\d+)?[)!]*"
ARITHMETIC: Final = re.compile(
    rf"{_NUMBER}(?:\s*(?:%\s*of\b|%\s*[-+]|\*\*|[-+*/^×÷])\s*{_NUMBER})+%?|sqrt\s*\(\s*\d[\d.]*\s*\)",
    re.IGNORECASE,
)
"""A sum as people write it: `17% of 2340`, `2+2`, `(3.5 + 4) * 2^10`."""

DATE: Final = re.compile(
    r"\b\d{4}-\d{2}-\d{2}(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d)?)?\b|\b(?:today|tomorrow|yesterday)\b"
)

_HINTS: Final = (
    (ARITHMETIC, "calculate arithmetic expression math"),
    (re.compile(r"\b[A-Z][a-z]+/[A-Z][A-Za-z_]+\b|\bUTC\b|\bo'clock\b"), "time timezone"),
    (
        re.compile(
            r"\b(?:rain|snow|sunny|umbrella|degrees|forecast|hot|cold|temperature)\w*\b", re.IGNORECASE
        ),
        "weather",
    ),
    (re.compile(r"\b(?:price|stock|share|shares|quote|ticker)\b", re.IGNORECASE), "stock quote price symbol"),
    (
        re.compile(r"\b(?:say|speak|pronounce|read aloud|read out)\b", re.IGNORECASE),
        "speech speak voice audio",
    ),
    (
        re.compile(
            r"\bhow many\b|\baverage\b|\b\w{3,}est\b|\b(?:most|least|top|list|count)\b", re.IGNORECASE
        ),
        "data database query sql",
    ),
)
"""What a way of asking is likely to be about, in words that a tool's description may use."""


_SPELLED: Final = (
    (re.compile(r"\bsquare root of\s+(\d+(?:\.\d+)?)", re.IGNORECASE), r"sqrt(\1)"),
    (re.compile(r"(?<=\d)\s+(?:times|multiplied by)\s+(?=\d)", re.IGNORECASE), " * "),
    (re.compile(r"(?<=\d)\s+divided by\s+(?=\d)", re.IGNORECASE), " / "),
    (re.compile(r"(?<=\d)\s+plus\s+(?=\d)", re.IGNORECASE), " + "),
    (re.compile(r"(?<=\d)\s+minus\s+(?=\d)", re.IGNORECASE), " - "),
    (re.compile(r"(?<=\d)\s+percent\s+of\s+(?=\d)", re.IGNORECASE), "% of "),
)


def with_operators(text: str) -> str:
    """Return the text with spelled-out sums in operators.

    For example, 12 times 3 becomes 12 * 3.
    """
    for pattern, written in _SPELLED:
        text = pattern.sub(written, text)
    return text


def words(text: str) -> list[str]:
    """Return the words of a text or a name, in lower case.

    The words of the stop list are left out.
    """
    found = (word.lower() for word in _WORD.findall(_CAMEL.sub(" ", text)))
    return [word for word in found if word not in STOP]


def question_words(question: str) -> set[str]:
    """Return the words of a question for choosing a tool.

    They are its own words, and the words suggested by its form.
    """
    plain = DATE.sub(" ", question)
    hinted = [hint for pattern, hint in _HINTS if pattern.search(plain)]
    return {word for word in words(" ".join([question, *hinted])) if not word.isdigit()}


def related(word: str, others: Iterable[str]) -> bool:
    """Return True if one of `others` is a form of this word."""
    return any(word == other or _one_stem(word, other) for other in others)


def _one_stem(first: str, second: str) -> bool:
    shorter = min(len(first), len(second))
    if first.rstrip("s") == second.rstrip("s"):
        return True
    return shorter >= _STEM and first[: max(_STEM, shorter - 3)] == second[: max(_STEM, shorter - 3)]
