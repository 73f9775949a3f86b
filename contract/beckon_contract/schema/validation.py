"""Validation of values by a schema, and their repair towards it.

A value that fails its schema is changed only if its meaning is beyond doubt. Repairs are driven by the
validator's errors, so a valid value is never touched.
"""

import copy
import difflib
import itertools
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema_rs

from beckon_contract.schema.decoding import UndecodableError, decode
from beckon_contract.schema.keywords import Schema, stated_types

MAX_ERRORS = 1000
MAX_PROBLEMS = 10
_MAX_VALUE = 60
_MAX_PROBLEM = 300

Kind = jsonschema_rs.ValidationErrorKind


class Validator:
    """A schema of 2020-12, compiled; `format` is an annotation, as the specification has it by default.

    A service may well take what a strict reading of a format refuses (a time without an offset, a local
    address); it answers for itself. Nothing is fetched.
    """

    def __init__(self, schema: Mapping[str, Any], root: str = "the arguments") -> None:
        """Compile a schema; raise `ValueError` if it is invalid. Normalised parameters never are.

        `root` names the whole value in problems.
        """
        self.schema: Schema = dict(schema)
        self._root = root
        self._compiled = jsonschema_rs.Draft202012Validator(self.schema, validate_formats=False, offline=True)

    def is_valid(self, value: object) -> bool:
        """Return True if the value satisfies the schema."""
        return self._compiled.is_valid(value)

    def errors(self, value: object) -> list[jsonschema_rs.ValidationError]:
        """Return the validator's own errors, at most `MAX_ERRORS`."""
        return list(itertools.islice(self._compiled.iter_errors(value), MAX_ERRORS))

    def problems(self, value: object) -> tuple[str, ...]:
        """Return the problems of a value in words, empty for a valid one."""
        problems = list(dict.fromkeys(self._describe(error) for error in self.errors(value)))
        if len(problems) > MAX_PROBLEMS:
            problems[MAX_PROBLEMS:] = [f"and {len(problems) - MAX_PROBLEMS} more"]
        return tuple(problems)

    def outer_schema(self, error: jsonschema_rs.ValidationError) -> Schema:
        """Return the schema with the keyword of an error.

        The keyword refused the value. The result is empty if the schema cannot be found.
        """
        node: Any = self.schema
        for token in error.schema_path[:-1]:
            try:
                node = node[token]
            except (KeyError, IndexError, TypeError):
                return {}
        return node if isinstance(node, dict) else {}

    def _describe(self, error: jsonschema_rs.ValidationError) -> str:
        problem = self._explain(error)
        return problem if len(problem) <= _MAX_PROBLEM else problem[: _MAX_PROBLEM - 1] + "…"

    def _explain(self, error: jsonschema_rs.ValidationError) -> str:
        place = self._place(error.instance_path)
        got = shorten(error.instance)
        match error.kind:
            case Kind.Required(property=name):
                return self._missing(
                    self._place([*error.instance_path, name]), name, self.outer_schema(error)
                )
            case Kind.Type(types=types):
                return f"{place} must be {' or '.join(types)}, got {got}"
            case Kind.Enum(options=options):
                return f"{place} must be one of {_listed(options)}, got {got}"
            case Kind.AdditionalProperties(unexpected=names) | Kind.UnevaluatedProperties(unexpected=names):
                return self._unexpected(place, names, self.outer_schema(error))
            case Kind.AnyOf(context=branches) | Kind.OneOfNotValid(context=branches):
                reasons = dict.fromkeys(self._explain(branch[0]) for branch in branches[:4] if branch)
                return f"{place} fits none of its alternatives: {'; or '.join(reasons)}"
        return f"{place}: {shorten_text(error.message)}, got {got}"

    def _place(self, path: Iterable[str | int]) -> str:
        shown = "".join(f"[{token}]" if isinstance(token, int) else f".{token}" for token in path)
        return f"`{shorten_text(shown.removeprefix('.'))}`" if shown else self._root

    def _missing(self, place: str, name: str, outer: Schema) -> str:
        wanted = outer.get("properties", {}).get(name)
        if not isinstance(wanted, dict):
            return f"{place} is required and missing"
        types = " or ".join(stated_types(wanted))
        values = f"one of {_listed(wanted['enum'])}" if isinstance(wanted.get("enum"), list) else ""
        hint = ": ".join(text for text in (values or types, str(wanted.get("description", ""))) if text)
        return f"{place} is required and missing{f' ({shorten_text(hint)})' if hint else ''}"

    def _unexpected(self, place: str, names: Iterable[str], outer: Schema) -> str:
        known = list(outer.get("properties", ()))
        near = [match for name in names for match in similar(name, known)]
        hint = f"; did you mean {_listed(near)}?" if near else f"; there is {_listed(known) or 'nothing'}"
        return f"there is no {_listed(names)} in {place}{hint}"


def similar(name: str, known: Iterable[str]) -> list[str]:
    """Return the known name probably meant by a misspelt one, if any."""
    folded = {candidate.casefold(): candidate for candidate in known}
    return [folded[match] for match in difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.75)]


def shorten(value: object) -> str:
    """Return a value as short JSON. Long text is cut; objects and arrays with content are only named."""
    if isinstance(value, dict | list) and value:
        return "an object" if isinstance(value, dict) else f"an array of {len(value)}"
    return shorten_text(json.dumps(value, ensure_ascii=False), _MAX_VALUE)


def shorten_text(text: str, length: int = 160) -> str:
    """Return a text, cut to at most `length` characters."""
    return text if len(text) <= length else text[: length - 1] + "…"


def _listed(values: Iterable[object]) -> str:
    shown = [shorten(value) for value in itertools.islice(values, 21)]
    return ", ".join(shown[:20]) + (", …" if len(shown) > 20 else "")


MAX_ROUNDS = 8  # each round goes one level deeper into what was encoded twice
_MAX_BRANCHES = 16

# Of ASCII digits alone: those of other scripts may be meant as text, and `int` would take them.
_INTEGER = re.compile(r"[+-]?\d{1,400}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_WORDS: dict[str, dict[str, bool | None]] = {
    "boolean": {"true": True, "false": False},
    "null": {"null": None, "none": None},
}
_NOTHING = object()


def coerce(value: Any, validator: Validator) -> tuple[Any, list[str]]:
    """Return a value nearer to the schema and the names of the repairs; it may still fail."""
    errors = validator.errors(value)
    if not errors:
        return value, []
    coercion = _Coercion(value, validator)
    for _ in range(MAX_ROUNDS):
        if not errors or not coercion.repair_all(errors):
            break
        errors = validator.errors(coercion.value)
    return coercion.value, list(dict.fromkeys(coercion.repairs))


class _Coercion:
    def __init__(self, value: Any, validator: Validator) -> None:
        self._box = [copy.deepcopy(value)]  # in a list, so that the root has a place, too
        self._validator = validator
        self.repairs: list[str] = []

    @property
    def value(self) -> Any:
        return self._box[0]

    def repair_all(self, errors: list[jsonschema_rs.ValidationError]) -> bool:
        """Repair as much as possible; return True if anything changed."""
        before = len(self.repairs)
        for error in errors:
            self._repair(error)
        return len(self.repairs) > before

    def _repair(self, error: jsonschema_rs.ValidationError) -> bool:
        location = self._find(error)
        if location is None:
            return False
        holder, key = location
        if holder[key] in (None, "") and self._drop_empty(holder, key, error):
            return self._note("empty_left_out")
        match error.kind:
            case Kind.AdditionalProperties(unexpected=names) | Kind.UnevaluatedProperties(unexpected=names):
                return self._drop(holder[key], names, error)
            case Kind.AnyOf(context=branches) | Kind.OneOfNotValid(context=branches):
                return any(self._mend_branch(holder, key, branch) for branch in branches[:_MAX_BRANCHES])
        coerced, repair = _coerced(holder[key], error.kind)
        if coerced is _NOTHING:
            return False
        holder[key] = coerced
        return self._note(repair)

    def _find(self, error: jsonschema_rs.ValidationError) -> tuple[Any, Any] | None:
        """Return the container and the key of the refused value.

        The result is `None` if an earlier repair changed the value.
        """
        holder: Any = self._box
        key: str | int = 0
        try:
            for token in error.instance_path:
                holder, key = holder[key], token
            current = holder[key]
        except (KeyError, IndexError, TypeError):
            return None
        return (holder, key) if type(current) is type(error.instance) and current == error.instance else None

    def _drop_empty(self, holder: Any, key: Any, error: jsonschema_rs.ValidationError) -> bool:
        """Take a null or an empty string out of its object, unless it is required there."""
        if not isinstance(holder, dict):
            return False
        value = holder.pop(key)
        for other in self._validator.errors(self.value):
            if (
                other.kind.name == "required"
                and [*other.instance_path, other.kind.value] == error.instance_path
            ):
                holder[key] = value
                return False
        return True

    def _drop(self, value: Any, names: list[str], error: jsonschema_rs.ValidationError) -> bool:
        """Drop unknown members, unless one is a parameter misspelt: dropping it would lose an argument."""
        absent = [
            name for name in self._validator.outer_schema(error).get("properties", ()) if name not in value
        ]
        if any(similar(name, absent) for name in names):
            return False
        for name in names:
            value.pop(name, None)
        return self._note("unknown_dropped")

    def _mend_branch(self, holder: Any, key: Any, branch: list[jsonschema_rs.ValidationError]) -> bool:
        """Repair all errors of one alternative, or none of them."""
        coerced, repairs = copy.deepcopy(holder[key]), len(self.repairs)
        if branch and all(self._repair(error) for error in branch):
            return True
        holder[key] = coerced
        del self.repairs[repairs:]
        return False

    def _note(self, repair: str) -> bool:
        self.repairs.append(repair)
        return True


def _coerced(value: Any, kind: jsonschema_rs.ValidationErrorKind) -> tuple[Any, str]:
    match kind:
        case Kind.Type(types=types):
            return _to_types(value, types)
        case Kind.Enum(options=options):
            return _to_option(value, options), "enum_spelling"
        case Kind.Constant(expected_value=expected):
            return _to_option(value, [expected]), "enum_spelling"
    return _NOTHING, ""


def _to_types(value: Any, types: list[str]) -> tuple[Any, str]:
    for name in sorted(types, key=_ORDER.index):
        coerced = _to_type(value, name)
        if coerced is not _NOTHING:
            return coerced, "type"
    if "array" in types and value is not None:
        return [value], "single_value"
    return _NOTHING, ""


_ORDER = ["object", "array", "boolean", "null", "integer", "number", "string"]


def _to_type(value: Any, name: str) -> Any:
    if name == "string":
        return json.dumps(value) if isinstance(value, bool | int | float) else _NOTHING
    if not isinstance(value, str):
        return _NOTHING
    text = value.strip()
    if name in _WORDS:
        return _WORDS[name].get(text.casefold(), _NOTHING)
    if name == "integer":
        return int(text) if _INTEGER.fullmatch(text) else _NOTHING
    if name == "number":
        return _to_number(text)
    return _to_container(text, dict if name == "object" else list)


def _to_number(text: str) -> Any:
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if len(text) < 400 and _NUMBER.fullmatch(text) else _NOTHING


def _to_container(text: str, kind: type) -> Any:
    if not text.startswith(("{", "[", "(")):
        return _NOTHING
    try:
        value, _ = decode(text)
    except UndecodableError:
        return _NOTHING
    return value if isinstance(value, kind) else _NOTHING


def _to_option(value: Any, options: list[Any]) -> Any:
    """Return the one option with the spelling of the value. Case, blanks and quotes are ignored."""
    if not isinstance(value, str | int | float):
        return _NOTHING
    matching = [option for option in options if _spelling(option) == _spelling(value)]
    return matching[0] if len(matching) == 1 else _NOTHING


def _spelling(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.strip().casefold()
