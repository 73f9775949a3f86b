"""Selection of a source's items by words.

An item is chosen if any word matches it; without words, all are.
"""

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TypeVar

from beckon_cli.importing.candidates import NoSource

Thing = TypeVar("Thing")


def choose_things(
    things: Sequence[Thing],
    words: Sequence[str],
    means: Callable[[str, Thing], bool],
    *,
    noun: str,
    known: Iterable[str],
) -> list[bool]:
    """Return one boolean for each item: True if any word matches.

    Without words all are True. Raises `NoSource` for a word that matches nothing, with the most similar of
    the words that are `known`.
    """
    if not words:
        return [True] * len(things)
    chosen = [False] * len(things)
    for word in words:
        hits = [means(word, thing) for thing in things]
        if not any(hits):
            raise NoSource(f"--select {word!r} means no {noun}{_near_word(word, known)}")
        chosen = [before or hit for before, hit in zip(chosen, hits, strict=True)]
    return chosen


def matches_pattern(text: str, pattern: str) -> bool:
    """Return True if a text matches a pattern, ignoring case.

    `*` in the pattern means any text.
    """
    return fnmatchcase(text.lower(), pattern.lower().replace("[", "[[]"))


def _near_word(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, dict.fromkeys(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else "; --list shows what there is"
