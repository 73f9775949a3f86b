"""Texts and names as terms: split at signs and at camelCase, folded, stemmed."""

import re
import threading
import unicodedata
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, Final

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
"""Words that are in every other text and tell no tool from another."""

_ONE_AT_A_TIME = threading.Lock()  # a stemmer keeps the word it works on in itself


def terms(text: str) -> list[str]:
    """Return the terms of a text in their order, each as often as it occurs."""
    if not text.isascii():  # ﬁ is fi, é is e
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(char for char in decomposed if not unicodedata.combining(char))
    found: list[str] = []
    for word in _WORD.findall(text):
        if word[0] >= _FIRST_UNSPACED and _IN_PAIRS.match(word):  # overlapping pairs do for words
            found.extend(map("".join, pairwise(word)) if len(word) > 1 else word)
        elif len(word) <= _LONGEST:
            found.extend(_terms_of(word))
    return found


@lru_cache(maxsize=32_768)
def _terms_of(written: str) -> tuple[str, ...]:
    word = written.lower()
    if word in _STOP or (len(word) < 2 and word.isascii()):
        return ()
    letters = word.rstrip("0123456789")
    if not letters or letters == word:
        return (_stem(word),)
    return (word, _stem(letters)) if len(letters) > 1 else (word,)  # "side1" is a side


def _stem(word: str) -> str:
    with _ONE_AT_A_TIME:
        stem: str = _stemmer().stemWord(word)
    return stem


@cache
def _stemmer() -> Any:
    # Imported late: a megabyte that a service with few tools need not spend.
    import Stemmer  # type: ignore[import-not-found]  # noqa: PLC0415  # an extension module without stubs

    return Stemmer.Stemmer("english")
