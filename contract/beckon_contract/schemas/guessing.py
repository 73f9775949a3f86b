"""The last resort for broken JSON: the guess of `json_repair`.

It is accepted if nothing was lost. That is so if the text can be accounted for character by character: the
keys and scalars of the guess are all found in the text in their order, strings within their quotes or as
bare words; between them there are only braces, brackets, commas, colons and blanks; and the text opens and
closes as many objects and arrays. So commas, the quotes of keys and stray closing braces are repaired; a
truncated text, a comment or a swallowed parameter is not.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

MAX_CHARACTERS = 4096
"""json_repair needs the square of the length, and more, for some texts."""

_GAP = re.compile(r"[\s{}\[\],:;]*")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])", re.ASCII)
_BARE = re.compile(r"[^\W\d][\w $./@-]*")
_NOT_WORDS = frozenset({"undefined", "nan", "infinity", "none", "null", "true", "false"})
_JOINED = re.compile(r"""["']\s*[:,+]|[:,+]\s*["']""")
_CONSTANTS = {True: ("true", "True"), False: ("false", "False"), None: ("null", "None")}


def guess(text: str) -> dict[str, Any] | None:
    """Return the probable object of a broken text, `None` if in doubt."""
    if len(text) > MAX_CHARACTERS:
        return None
    import json_repair  # noqa: PLC0415  # most models never need it, and it takes a megabyte

    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _is_accounted_for(text, value) else None


def _is_accounted_for(text: str, value: dict[str, Any]) -> bool:
    structure = _structure(text, value)
    if structure is None:
        return False
    objects, arrays = _containers(value)
    opened = (structure.count("{"), structure.count("[")) == (objects, arrays)
    return opened and structure.count("}") >= objects and structure.count("]") >= arrays


def _structure(text: str, value: dict[str, Any]) -> str | None:
    """Return the text without keys and scalars, `None` if more than structure is left."""
    position, gaps = 0, ""
    for (leaf,) in _leaves(value):
        gap = _GAP.match(text, position)
        end = _end_of(leaf, text, gap.end()) if gap and gap[0] else None
        if gap is None or end is None:
            return None
        position, gaps = end, gaps + gap[0]
    rest = text[position:]
    return gaps + rest if _GAP.fullmatch(rest) else None


def _leaves(value: Any) -> Iterator[tuple[Any]]:
    """Yield the keys and scalars of a value in their order."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield (name,)
            yield from _leaves(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _leaves(entry)
    else:
        yield (value,)


def _containers(value: Any) -> tuple[int, int]:
    """Return how many objects and how many arrays there are."""
    if not isinstance(value, dict | list):
        return 0, 0
    inner = [_containers(entry) for entry in (value.values() if isinstance(value, dict) else value)]
    objects, arrays = sum(pair[0] for pair in inner), sum(pair[1] for pair in inner)
    return (objects + 1, arrays) if isinstance(value, dict) else (objects, arrays + 1)


def _end_of(leaf: Any, text: str, position: int) -> int | None:
    """Return the end of a key or scalar at this position.

    The result is `None` if something else is written there.
    """
    if isinstance(leaf, str):
        return _end_of_string(leaf, text, position)
    if leaf is None or isinstance(leaf, bool):
        return next(
            (position + len(word) for word in _CONSTANTS[leaf] if text.startswith(word, position)), None
        )
    number = _NUMBER.match(text, position)
    return number.end() if number and _is_number(number[0], leaf) else None


def _end_of_string(leaf: str, text: str, position: int) -> int | None:
    if _JOINED.search(leaf):
        return None
    raw = () if "\\" in leaf else (leaf,)
    for spelling in (*raw, json.dumps(leaf, ensure_ascii=False)[1:-1], json.dumps(leaf)[1:-1]):
        for quote in ('"', "'"):
            if text.startswith(quote + spelling + quote, position):
                return position + len(spelling) + 2
    bare = _BARE.match(text, position)
    if bare and bare[0].strip() == leaf and leaf.casefold() not in _NOT_WORDS:
        return bare.end()
    return None


def _is_number(digits: str, value: int | float) -> bool:
    try:
        return float(digits) == value
    except (ValueError, OverflowError):
        return False
