"""The members of a JSON object as the text that stands there, not as parsed values.

Parsing and writing again changes numbers (1e400, integers over 64 bits) and repeated
members; an intermediary must not (CloudEvents, "relay").
"""

import json
import re
from collections.abc import Callable

_SPACE = re.compile(r"[ \t\n\r]*")


class NotJsonError(ValueError):
    """The text is not a JSON object; the message says where."""


def _refuse(constant: str) -> object:
    raise NotJsonError(f"{constant} is not JSON")


# Numbers stay text: nothing is lost, and a number of a million digits costs nothing.
_DECODER = json.JSONDecoder(parse_float=str, parse_int=str, parse_constant=_refuse)


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
    found: dict[str, bytes] = {}
    at = _expect(text, _skip(text, 0), "{")
    if text[at : at + 1] != "}":
        while True:
            if text[at : at + 1] != '"':
                raise NotJsonError(f"a member name is missing at character {at}")
            name, at = decode(text, at)
            start = _expect(text, _skip(text, at), ":")
            _, end = decode(text, start)
            if str(name) in found:
                raise NotJsonError(f"the member {name!r} is there more than once")
            found[str(name)] = text[start:end].encode()
            at = _skip(text, end)
            if text[at : at + 1] != ",":
                break
            at = _skip(text, at + 1)
    at = _expect(text, at, "}")
    if at != len(text):
        raise NotJsonError(f"something follows the object at character {at}")
    return found


def _expect(text: str, at: int, mark: str) -> int:
    """Return the place after `mark` and the space behind it."""
    if text[at : at + 1] != mark:
        raise NotJsonError(f"{mark!r} is missing at character {at}")
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at
