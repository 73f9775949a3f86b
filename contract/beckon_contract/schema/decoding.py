"""Decoding of a model's arguments into a JSON value.

Spelling is repaired, content is not.

The last resort for broken JSON is the guess of `json_repair`, accepted if nothing was lost. That is so if
the text can be accounted for character by character: the keys and scalars of the guess are all found in the
text in their order, strings within their quotes or as bare words; between them there are only braces,
brackets, commas, colons and blanks; and the text opens and closes as many objects and arrays. So commas, the
quotes of keys and stray closing braces are repaired; a truncated text, a comment or a swallowed parameter is
not.
"""

import ast
import io
import itertools
import json
import math
import re
import tokenize
import warnings
from collections.abc import Iterator
from typing import Any

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
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members and members[name] != value:
            raise _RefusedError(f"`{name[:60]}` is given twice with different values; give it once")
        members[name] = value
    return members


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
    if any(escape[1] not in _ESCAPED for escape in _ESCAPE.finditer(text)):
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


MAX_GUESSED_CHARACTERS = 4096
"""json_repair needs the square of the length, and more, for some texts."""

_GAP = re.compile(r"[\s{}\[\],:;]*")
_BARE_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])", re.ASCII)
_BARE = re.compile(r"[^\W\d][\w $./@-]*")
_NOT_WORDS = frozenset({"undefined", "nan", "infinity", "none", "null", "true", "false"})
_JOINED = re.compile(r"""["']\s*[:,+]|[:,+]\s*["']""")
_CONSTANTS = {True: ("true", "True"), False: ("false", "False"), None: ("null", "None")}


def guess(text: str) -> dict[str, Any] | None:
    """Return the probable object of a broken text, `None` if in doubt."""
    if len(text) > MAX_GUESSED_CHARACTERS:
        return None
    import json_repair  # noqa: PLC0415  # most models never need it, and it takes a megabyte

    try:
        value = json_repair.loads(text, skip_json_loads=True)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _has_all_text(text, value) else None


def _has_all_text(text: str, value: dict[str, Any]) -> bool:
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
    number = _BARE_NUMBER.match(text, position)
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
