"""Decoding of a model's arguments into a JSON value.

Spelling is repaired, content is not.
"""

import ast
import io
import itertools
import json
import math
import re
import tokenize
import warnings
from typing import Any

from beckon_contract.schemas.guessing import guess

MAX_CHARACTERS = 1_000_000
MAX_LITERAL_CHARACTERS = 65_536
MAX_DEPTH = 64
MAX_VALUES = 64

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = frozenset("\"'\\/bfnrtu")
_NUMBER = re.compile(r"(?:0|[1-9]\d*)(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+", re.ASCII)
_OPENING, _CLOSING = "{[(", "}])"
_LABEL = re.compile(r"(?:json|python|javascript|tool_call)\s*(?=[{\[])", re.IGNORECASE)


class UndecodableError(ValueError):
    """A text beyond repair into JSON; the message is for the model."""


class _RefusedError(UndecodableError):
    """Well-formed and yet not to be accepted: mending would only hide it."""


def decode(text: str) -> tuple[Any, list[str]]:
    """Return the JSON value of a text and the names of the repairs it took, none for JSON.

    The order: JSON, without a fence, as a Python literal, JSON inside a JSON string (once), `json_repair`.
    Raises `UndecodableError`.
    """
    if len(text) > MAX_CHARACTERS:
        raise UndecodableError(
            f"the arguments are {len(text)} characters long; the limit is {MAX_CHARACTERS}"
        )
    value, repairs = _decode(text)
    if isinstance(value, str) and value.strip():
        try:
            inner, more = _decode(value)
        except UndecodableError:
            return value, repairs
        return inner, [*repairs, "double_encoding", *more]
    return value, repairs


def decode_several(text: str) -> list[Any] | None:
    """Return several JSON values in sequence, or `None` for any other text."""
    if len(text) > MAX_CHARACTERS:
        return None
    stripped = _without_fence(text)
    values: list[Any] = []
    position = 0
    try:
        while position < len(stripped) and len(values) <= MAX_VALUES:
            value, position = _DECODER.raw_decode(stripped, position)
            values.append(value)
            while position < len(stripped) and stripped[position] in " \t\r\n,;":
                position += 1
    except (ValueError, RecursionError):
        return None
    return values if 1 < len(values) <= MAX_VALUES else None


def _decode(text: str) -> tuple[Any, list[str]]:
    try:
        return _parse(text), []
    except _RefusedError:
        raise
    except ValueError as error:
        failure = str(error)
    if decode_several(text) is not None:
        raise _RefusedError("there are several JSON values one after the other; make one call for each")
    if len(text) > MAX_LITERAL_CHARACTERS or _depth(text) > MAX_DEPTH:
        raise UndecodableError(f"the arguments are not JSON: {failure}")
    return _mend(text, failure)


def _mend(text: str, failure: str) -> tuple[Any, list[str]]:
    stripped = _without_fence(text)
    fence = ["fence"] if stripped != text.strip() else []
    for repair, parse in (((), _parse), (("python_literal",), _parse_literal)):
        try:
            return parse(stripped), [*fence, *repair]
        except _RefusedError:
            raise
        except ValueError:
            continue
    guessed = guess(stripped)
    if guessed is None:
        raise UndecodableError(f"the arguments are not JSON: {failure}")
    return guessed, [*fence, "json_repair"]


def _parse(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise _RefusedError(f"the arguments are nested more than {MAX_DEPTH} levels deep") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found and found[name] != value:
            raise _RefusedError(f"`{name[:60]}` is given twice with different values; give it once")
        found[name] = value
    return found


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _RefusedError(f"{digits[:40]} is too large for a number")
    return number


def _refuse_constant(name: str) -> None:
    raise _RefusedError(f"{name} is not a JSON number; leave the parameter out or give null")


def _integer(digits: str) -> int:
    if len(digits) > 400:
        raise _RefusedError(f"{digits[:20]}… is too large for a number")
    return int(digits)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_float=_finite, parse_int=_integer, parse_constant=_refuse_constant
)


def _without_fence(text: str) -> str:
    """Strip a Markdown fence, closed or not, and the bare word `json` before an object."""
    stripped = text.strip()
    if stripped.startswith("```"):
        stripped = stripped.strip("`").strip()
    label = _LABEL.match(stripped)
    return stripped[label.end() :] if label else stripped


def _depth(text: str) -> int:
    """Return how deep brackets are nested, those in strings included: an upper bound."""
    depth = deepest = 0
    for character in text:
        if character in _OPENING:
            depth += 1
            deepest = max(deepest, depth)
        elif character in _CLOSING:
            depth -= 1
    return deepest


def _parse_literal(text: str) -> Any:
    """Read a Python literal, JSON's `true`, `false` and `null` allowed; nothing is evaluated.

    A text is refused if Python would read it differently from its meaning: escapes unknown to JSON, as in a
    Windows path, and the cases of `_is_ambiguous`.
    """
    if any(found[1] not in _ESCAPED for found in _ESCAPE.finditer(text)):
        raise UndecodableError("an escape that JSON has not")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a number run into a word, for one, is only warned about
        try:
            tree = ast.parse(text, mode="eval").body
        except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
            raise UndecodableError(str(error)) from None
    if _is_ambiguous(text):
        raise UndecodableError("ambiguous")
    return _from_tree(tree)


def _is_ambiguous(text: str) -> bool:
    """Return True for adjacent strings, and for numbers outside JSON.

    Python joins adjacent strings. Numbers outside JSON are such as 007.5 and 0x10.
    """
    tokens = [
        token
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in (tokenize.NL, tokenize.COMMENT)
    ]
    joined = (tokenize.STRING, tokenize.STRING)
    return any((one.type, other.type) == joined for one, other in itertools.pairwise(tokens)) or any(
        token.type == tokenize.NUMBER and not _NUMBER.fullmatch(token.string) for token in tokens
    )


_NAMES = {"true": True, "false": False, "null": None}


def _from_tree(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=str() as value):
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case ast.Constant(value=bool() | int() | None as value):
            return value
        case ast.Constant(value=float() as value) if math.isfinite(value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Name(id=name) if name in _NAMES:
            return _NAMES[name]
        case ast.List(elts=entries) | ast.Tuple(elts=entries):
            return [_from_tree(entry) for entry in entries]
        case ast.Dict(keys=keys, values=values):
            return _unique([(_key(key), _from_tree(value)) for key, value in zip(keys, values, strict=True)])
    raise UndecodableError("not a literal")


def _key(node: ast.expr | None) -> str:
    match node:
        case ast.Constant(value=str() as name):
            return name
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return str(number)
    raise UndecodableError("not a key")
