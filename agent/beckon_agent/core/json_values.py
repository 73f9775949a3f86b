"""Reading JSON values of any type, as servers and stored histories send them."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass

import orjson

from beckon_contract import jsontext

_DEEPEST = 100
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def parse_json(text: str | bytes) -> object:
    """Parse JSON; raises `ValueError` for anything else.

    The standard parser is the fallback: it accepts input that some servers write and RFC 8259 does not allow,
    such as NaN and halves of surrogate pairs.
    """
    try:
        parsed: object = jsontext.loads(text)
    except jsontext.NotJsonError:
        source = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        try:
            parsed = json.loads(source, strict=False)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
    return parsed


def to_json(value: object) -> str:
    """Return the JSON text of a value.

    A dataclass becomes an object, any other value without a JSON form its `str`.
    """
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:
        # Integers over 64 bits, halves of surrogate pairs, deep nesting.
        return json.dumps(value, default=_plain)


def _plain(value: object) -> object:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def is_complete(text: str) -> bool:
    """True if a text is one whole JSON value."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def is_object(text: str) -> bool:
    """True if a text is one JSON object, read alike by every parser."""
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def as_mapping(value: object) -> Mapping[str, object]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_sequence(value: object) -> Sequence[object]:
    """Return the value if it is an array, else an empty one."""
    return value if isinstance(value, list) else ()


def as_text(value: object) -> str:
    """Return a string as well-formed UTF-8 text.

    Lone surrogates become U+FFFD; a value of another type becomes an empty string.
    """
    return well_formed(value) if isinstance(value, str) else ""


def as_string(value: object) -> str:
    """Return the value if it is a string, else an empty one.

    Surrogates are included: the next piece may have the other half.
    """
    return value if isinstance(value, str) else ""


def well_formed(value: str) -> str:
    """Join halves of surrogate pairs, and replace lone ones by U+FFFD.

    No HTTP request can carry a lone one.
    """
    if value.isascii() or not _SURROGATE.search(value):
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class SurrogateJoiner:
    """Joins characters split by a server into surrogate halves.

    The halves are in two successive pieces of one text.
    """

    def __init__(self) -> None:
        self._half = ""

    def feed(self, more: str) -> str:
        """Return the complete characters so far. A first half at the end is held back for the next piece."""
        text, self._half = self._half + more, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return well_formed(text)

    def close(self) -> str:
        """Return U+FFFD for a half without a second one, else nothing."""
        half, self._half = self._half, ""
        return well_formed(half)


def clean_strings(value: object, depth: int = 0) -> object:
    """Return a JSON value with all its strings well-formed.

    Other values nested deeper than 100 levels become null. Keys stay as they are.
    """
    if isinstance(value, str):
        return well_formed(value)
    if depth > _DEEPEST:
        return None
    if isinstance(value, list):
        return [clean_strings(member, depth + 1) for member in value]
    if isinstance(value, dict):
        return {key: clean_strings(member, depth + 1) for key, member in value.items()}
    return value


def first_piece(source: Mapping[str, object], *keys: str) -> str:
    """Return the first non-empty string among these members; it may have halves of surrogate pairs."""
    for key in keys:
        value = source.get(key)
        if value and isinstance(value, str):
            return value
    return ""


def first_text(source: Mapping[str, object], *keys: str) -> str:
    """Return the first non-empty string among these members, well-formed."""
    return well_formed(first_piece(source, *keys))
