"""Repair of a value towards its schema.

A value that fails its schema is changed only if its meaning is beyond doubt. Repairs are driven by the
validator's errors, so a valid value is never touched.
"""

import copy
import json
import re
from typing import Any

import jsonschema_rs

from beckon_contract.schemas.decoding import UndecodableError, decode
from beckon_contract.schemas.validation import Kind, Validator, similar

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
        if not errors or not coercion.mend_all(errors):
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

    def mend_all(self, errors: list[jsonschema_rs.ValidationError]) -> bool:
        """Repair as much as possible; return True if anything changed."""
        before = len(self.repairs)
        for error in errors:
            self._mend(error)
        return len(self.repairs) > before

    def _mend(self, error: jsonschema_rs.ValidationError) -> bool:
        found = self._find(error)
        if found is None:
            return False
        holder, key = found
        if holder[key] in (None, "") and self._leave_out(holder, key, error):
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

    def _leave_out(self, holder: Any, key: Any, error: jsonschema_rs.ValidationError) -> bool:
        """Take a null or an empty string out of its object, unless it is required there."""
        if not isinstance(holder, dict):
            return False
        value = holder.pop(key)
        for left in self._validator.errors(self.value):
            if left.kind.name == "required" and [*left.instance_path, left.kind.value] == error.instance_path:
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
        if branch and all(self._mend(error) for error in branch):
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
    """Return the one option with the spelling of the value.

    Case, blanks and quotes are ignored.
    """
    if not isinstance(value, str | int | float):
        return _NOTHING
    matching = [option for option in options if _spelling(option) == _spelling(value)]
    return matching[0] if len(matching) == 1 else _NOTHING


def _spelling(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.strip().casefold()
