"""Reading JSON values of any type, as servers and stored histories send them."""

import json
import re
from collections.abc import Mapping, Sequence

import orjson

from beckon_contract import jsontext

_DEEPEST = 100
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def loads(text: str | bytes) -> object:
    """Parse JSON; raises `ValueError` where it is none.

    The standard parser has the second say: it takes what some servers write and
    RFC 8259 does not allow, such as NaN and halves of surrogate pairs.
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


def dumps(value: object) -> str:
    """Return the JSON text of a value; what JSON has no form for becomes its `str`."""
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:
        # Integers over 64 bits, halves of surrogate pairs, deep nesting.
        return json.dumps(value, default=str)


def is_complete(text: str) -> bool:
    """Whether a text is one whole JSON value."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def is_object(text: str) -> bool:
    """Whether a text is one JSON object that every parser reads alike."""
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def mapping(value: object) -> Mapping[str, object]:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> Sequence[object]:
    """Return the value if it is an array, else an empty one."""
    return value if isinstance(value, list) else ()


def text(value: object) -> str:
    """Return the value if it is a string that UTF-8 can carry, else what is left of it."""
    return well_formed(value) if isinstance(value, str) else ""


def piece(value: object) -> str:
    """Return the value if it is a string, surrogates included: the next piece may have the other half."""
    return value if isinstance(value, str) else ""


def well_formed(value: str) -> str:
    """Join halves of surrogate pairs; a lone one, which no HTTP request can carry, becomes U+FFFD."""
    if value.isascii() or not _SURROGATE.search(value):
        return value
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Joiner:
    """Joins characters that a server split in surrogate halves over two pieces of one text."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, more: str) -> str:
        """Return what is whole by now; a first half at the end is held back for the next piece."""
        whole, self._half = self._half + more, ""
        if "\ud800" <= whole[-1:] <= "\udbff":
            whole, self._half = whole[:-1], whole[-1]
        return well_formed(whole)

    def close(self) -> str:
        """Return U+FFFD for a half that stayed alone, else nothing."""
        half, self._half = self._half, ""
        return well_formed(half)


def clean(value: object, depth: int = 0) -> object:
    """Return a JSON value with every string in it well-formed; what is nested absurdly deep is null."""
    if isinstance(value, str):
        return well_formed(value)
    if depth > _DEEPEST:
        return None
    if isinstance(value, list):
        return [clean(member, depth + 1) for member in value]
    if isinstance(value, dict):
        return {key: clean(member, depth + 1) for key, member in value.items()}
    return value


def first_piece(source: Mapping[str, object], *keys: str) -> str:
    """Return the first of these members that is a string and not empty, as `piece` does."""
    return next((found for key in keys if (found := piece(source.get(key)))), "")


def first_text(source: Mapping[str, object], *keys: str) -> str:
    """Return the first of these members that is a string and not empty."""
    return well_formed(first_piece(source, *keys))
