"""Python call arguments in a model's text: `name='x', range=(0, 100)`, read and never evaluated.

Keywords as names (`class=`, `from=`) and JSON's words (`true`, `null`) occur, and quotes that
were not escaped; so the structure is read here, and only single literals go through `ast`.
"""

import ast
import re
from typing import Final

from beckon_agent.dialects.text_parser import Damaged, Incomplete, Steps, TextSource

MAX_DEPTH: Final = 64
MAX_WORD: Final = 400
"""The longest number or name, in characters."""

_WORD = re.compile(r"[\w.+\-]*")
_NUMBER = re.compile(r"[+-]?(\d[\d_]*\.?[\d_]*|\.\d+)(e[+-]?\d+)?|0[xob][\da-f_]+", re.IGNORECASE | re.ASCII)
_CONSTANTS: dict[str, object] = {
    "True": True, "true": True, "False": False, "false": False, "None": None, "null": None,
}  # fmt: skip
_CLOSERS = {"[": "]", "(": ")", "{": "}"}
_MAY_FOLLOW = frozenset(",)]}:") | {""}
_TO_ESCAPE = re.compile(r"\\.|[\"\r\0]", re.DOTALL)
_KNOWN_ESCAPES = frozenset("\n\\'\"abfnrtv01234567xuUN")


def call_arguments(source: TextSource) -> Steps[dict[str, object]]:
    """Take `name=value, ...)` with the bracket, and return the named values.

    Raises Damaged at positional arguments and at anything but literals, Incomplete at the end.
    """
    arguments: dict[str, object] = {}
    while True:
        yield from source.skip_blanks()
        if (yield from source.take_literal(")")):
            return arguments
        if (yield from source.take_literal("**")):
            arguments.update((yield from _read_mapping(source)))
        else:
            name = yield from source.take_match(_WORD, MAX_WORD)
            yield from source.skip_blanks()
            if not name:
                raise source.error_here()
            yield from source.expect_literal("=")
            arguments[name] = yield from read_literal(source, 0)
        yield from _take_separator(source, ")")


def read_literal(source: TextSource, depth: int) -> Steps[object]:
    """Take one literal: tuples and sets become lists, as JSON has only those."""
    yield from source.skip_blanks()
    first = yield from source.peek()
    if first in ("'", '"'):
        return (yield from _read_string(source, first))
    if first in _CLOSERS:
        if depth >= MAX_DEPTH:
            raise Damaged
        source.at += 1
        return (yield from _read_container(source, first, depth + 1))
    return _to_scalar((yield from source.take_match(_WORD, MAX_WORD)), source)


def _read_mapping(source: TextSource) -> Steps[dict[str, object]]:
    value = yield from read_literal(source, 0)
    if not isinstance(value, dict):
        raise Damaged
    return value


def _to_scalar(word: str, source: TextSource) -> object:
    if not word:
        raise source.error_here()
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if not _NUMBER.fullmatch(word):
        raise Damaged
    try:
        number: object = ast.literal_eval(word)
    except (SyntaxError, ValueError):
        return word  # such as 007, which Python refuses: a code rather than a number
    return number


def _read_container(source: TextSource, opener: str, depth: int) -> Steps[object]:
    closer = _CLOSERS[opener]
    items: list[object] = []
    pairs: dict[str, object] = {}
    comma = False
    while True:
        yield from source.skip_blanks()
        if (yield from source.take_literal(closer)):
            break
        item = yield from read_literal(source, depth)
        yield from source.skip_blanks()
        if opener == "{" and (yield from source.take_literal(":")):
            pairs[item if isinstance(item, str) else str(item)] = yield from read_literal(source, depth)
        else:
            items.append(item)
        comma = (yield from _take_separator(source, closer)) or comma
    if opener == "{" and not items:
        return pairs
    if pairs:
        raise Damaged
    return items[0] if opener == "(" and len(items) == 1 and not comma else items


def _take_separator(source: TextSource, closer: str) -> Steps[bool]:
    """Take a comma; return False at the closer. The closer is left for the caller."""
    yield from source.skip_blanks()
    if (yield from source.take_literal(",")):
        return True
    if not (yield from source.starts_with(closer)):
        raise source.error_here()
    return False


def _read_string(source: TextSource, quote: str) -> Steps[str]:
    source.at += 1
    if not (yield from source.take_literal(quote)):
        return _resolve_escapes((yield from _read_string_body(source, quote)))
    if (yield from source.take_literal(quote)):
        return _resolve_escapes((yield from _read_string_body(source, quote * 3)))
    return ""


def _read_string_body(source: TextSource, quote: str) -> Steps[str]:
    """Take a string's text up to its closing quote, with its escapes.

    A bare quote ends it only if the next character may follow a value: models forget to escape.
    """
    parts: list[str] = []
    while True:
        text, stop = yield from source.take_until(quote, "\\")
        parts.append(text)
        if not stop:
            raise Incomplete
        if stop == "\\":
            parts.append(stop + (yield from source.take_character()))
        elif len(quote) == 3 or (yield from source.beyond_space()) in _MAY_FOLLOW:
            return "".join(parts)
        else:
            parts.append("\\" + stop)


def _resolve_escapes(body: str) -> str:
    """Read the escapes as Python does. A text with wrong escapes stays as it is."""
    try:
        text: str = ast.literal_eval(f'"""{_TO_ESCAPE.sub(_resolve_escape, body)}"""')
    except (SyntaxError, ValueError):
        return body
    return text


def _resolve_escape(match: re.Match[str]) -> str:
    piece = match.group()
    if len(piece) == 2:
        return piece if piece[1] in _KNOWN_ESCAPES else f"\\{piece}"
    return '\\"' if piece == '"' else f"\\x{ord(piece):02x}"
