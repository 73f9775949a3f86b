"""JSON without a loss: values with integers of any length, and the members of an object as text.

orjson reads an integer of more than 64 bits as a rounded float, cannot write one, and writes NaN and
infinities as null. Parsing and writing again also changes floats and repeated members, which an
intermediary must not do (CloudEvents, "relay"): `members` leaves the text as it is.
"""

import json
import math
import re
from collections.abc import Callable
from typing import Any

import orjson

_MOST_DIGITS = 4300
"""Python reads and writes no longer integers: it takes the square of their length."""

_LONG_NUMBER = re.compile(r"\d{19}", re.ASCII)
_LONG_NUMBER_BYTES = re.compile(_LONG_NUMBER.pattern.encode())
_SPACE = re.compile(r"[ \t\n\r]*")


class NotJsonError(ValueError):
    """The text is not a JSON object; the message names the place."""


def _refuse(constant: str) -> object:
    raise NotJsonError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise NotJsonError(f"{digits[:40]} is Infinity to a reader of JSON: too large for a number")
    return number


def _integer(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise NotJsonError(f"an integer of {len(digits)} digits is too long; {_MOST_DIGITS} may be read")
    return int(digits)


_EXACT = json.JSONDecoder(parse_float=_finite, parse_int=_integer, parse_constant=_refuse)
# Numbers stay text: nothing is lost, and a number of a million digits costs nothing.
_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refuse)


def loads(text: str | bytes) -> Any:
    """Parse JSON; an integer is an `int` at any length.

    Raises `NotJsonError`, which names NaN and infinities.
    """
    try:
        value = orjson.loads(text)
        long = _LONG_NUMBER.search(text) if isinstance(text, str) else _LONG_NUMBER_BYTES.search(text)
        if long is None:
            return value
        return _EXACT.decode(text if isinstance(text, str) else text.decode())
    except orjson.JSONDecodeError as error:
        raise _named(text) or NotJsonError(str(error)) from None
    except RecursionError:
        raise NotJsonError("it is nested too deeply") from None


def dumps(value: object, option: int = 0) -> bytes:
    """Return compact JSON, with integers of any length.

    `option` is that of orjson.

    Raises `NotJsonError` for NaN and infinities, by name, and for what JSON has no form for.
    """
    try:
        text = orjson.dumps(value, option=option)
    except TypeError as error:
        return _written(value, option, error)
    if b"null" in text:
        _refuse_not_finite(value)
    return text


def _named(text: str | bytes) -> NotJsonError | None:
    """Return the error naming NaN or an infinity in a text, if any."""
    try:
        _EXACT.decode(text if isinstance(text, str) else text.decode())
    except NotJsonError as error:
        return error
    except (ValueError, RecursionError):
        pass
    return None


def _written(value: object, option: int, error: TypeError) -> bytes:
    indent = 2 if option & orjson.OPT_INDENT_2 else None
    separators = None if indent else (",", ":")
    try:
        return json.dumps(
            value, ensure_ascii=False, allow_nan=False, indent=indent, separators=separators
        ).encode()
    except (TypeError, RecursionError):
        raise NotJsonError(str(error)) from None
    except ValueError as refused:  # not finite, too many digits, or half a character
        _refuse_not_finite(value)
        raise NotJsonError(str(refused)) from None


def _refuse_not_finite(value: object) -> None:
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            pending.extend(node.values())
        elif isinstance(node, list | tuple):
            pending.extend(node)
        elif isinstance(node, float) and not math.isfinite(node):
            raise NotJsonError(f"{json.dumps(node)} is not JSON")


def members(body: bytes) -> dict[str, bytes]:
    """Return the text of each member of a JSON object, by name.

    Raises `NotJsonError` for anything that is not a JSON object in UTF-8, for a name that is
    there twice, and for nesting that is too deep to read.
    """
    try:
        text = body.decode()
        return _scan(text, _DECODER.raw_decode)
    except UnicodeDecodeError:
        raise NotJsonError("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise NotJsonError(str(error)) from None
    except RecursionError:
        raise NotJsonError("it is nested too deeply") from None


def _scan(text: str, decode: Callable[[str, int], tuple[object, int]]) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    at = _expect(text, _skip(text, 0), "{")
    if text[at : at + 1] != "}":
        while True:
            if text[at : at + 1] != '"':
                raise NotJsonError(f"a member name is missing at character {at}")
            name, at = decode(text, at)
            start = _expect(text, _skip(text, at), ":")
            _, end = decode(text, start)
            if str(name) in members:
                raise NotJsonError(f"the member {name!r} is there more than once")
            members[str(name)] = text[start:end].encode()
            at = _skip(text, end)
            if text[at : at + 1] != ",":
                break
            at = _skip(text, at + 1)
    at = _expect(text, at, "}")
    if at != len(text):
        raise NotJsonError(f"something follows the object at character {at}")
    return members


def _expect(text: str, at: int, mark: str) -> int:
    """Return the place after `mark` and the space behind it."""
    if text[at : at + 1] != mark:
        raise NotJsonError(f"{mark!r} is missing at character {at}")
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at
