"""The arguments of a tool call: decoded, repaired and validated.

The order of repair: JSON; without a fence; as a Python literal; decoded once more; `json_repair`; then
towards the schema. Each repair is reported by name: fence, python_literal, double_encoding, json_repair,
type, single_value, enum_spelling, empty_left_out, unknown_dropped.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from beckon_contract.schema.decoding import MAX_DEPTH, UndecodableError, decode, decode_several
from beckon_contract.schema.validation import Kind, Validator, coerce, shorten, shorten_text

__all__ = ["Arguments", "InvalidArguments", "Validator", "read_arguments", "split_arguments"]

_Place = tuple[str | int, ...]

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1


class InvalidArguments(ValueError):
    """Unreadable or invalid arguments of a tool call. `problems` says to the model what to change."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Arguments:
    """Valid arguments, with the names of their repairs, none for most."""

    value: dict[str, Any]
    repaired: tuple[str, ...] = ()


def read_arguments(
    raw: str | bytes | Mapping[str, Any] | None, schema: Mapping[str, Any] | Validator
) -> Arguments:
    """Return a model's arguments, repaired and valid against the schema.

    No arguments at all mean `{}`. Raises `InvalidArguments`. Valid JSON that satisfies the schema is
    returned as it is, except that a whole float for an integer, such as `3.0` or `1e3`, becomes that
    integer.
    """
    validator = schema if isinstance(schema, Validator) else Validator(schema)
    value, repairs = _read(raw)
    return _fit(value, repairs, validator)


def split_arguments(raw: str, schema: Mapping[str, Any] | Validator) -> list[dict[str, Any]] | None:
    """Return the arguments of several calls joined by a server.

    The text looks like `{"a": 1}{"a": 2}`.

    `None` unless there are at least two objects and each fits the schema (BerriAI/litellm#33678).
    """
    validator = schema if isinstance(schema, Validator) else Validator(schema)
    values = decode_several(raw)
    if values is None:
        return None
    try:
        return [_fit(value, [], validator).value for value in values]
    except InvalidArguments:
        return None


def _read(raw: str | bytes | Mapping[str, Any] | None) -> tuple[Any, list[str]]:
    if raw is None:
        return {}, []
    if isinstance(raw, Mapping):
        return dict(raw), []
    try:
        text = raw.decode() if isinstance(raw, bytes) else raw
        value, repairs = decode(text) if text.strip() else ({}, [])
    except UnicodeDecodeError:
        raise InvalidArguments(("the arguments are not UTF-8",)) from None
    except UndecodableError as error:
        raise InvalidArguments((str(error),)) from None
    return ({}, repairs) if value in (None, "") else (value, repairs)


def _fit(value: Any, repairs: list[str], validator: Validator) -> Arguments:
    if not isinstance(value, dict):
        raise InvalidArguments((f"the arguments must be an object, got {shorten(value)}",))
    _check_json(value)
    fitted, more = coerce(value, validator)
    problems = validator.problems(fitted)
    if problems:
        raise InvalidArguments(problems)
    fitted = _with_integers(fitted, validator)
    _check_integers(fitted)
    return Arguments(fitted, (*repairs, *more))


def _with_integers(value: dict[str, Any], validator: Validator) -> dict[str, Any]:
    """Return valid arguments, with whole floats as integers if required.

    JSON Schema calls 3.0 an integer, and most languages do not. The validator finds the integer parameters:
    they would not take a fraction.
    """
    if not any(_whole_floats(value)):
        return value
    with_fractions = _replaced(value, (), lambda _, number: 0.5 if number.is_integer() else number)
    wanted = {place for error in validator.errors(with_fractions) for place in _integer_places(error)}
    replaced: dict[str, Any] = _replaced(
        value, (), lambda place, number: int(number) if place in wanted and number.is_integer() else number
    )
    return replaced


def _whole_floats(value: object) -> Iterator[bool]:
    if isinstance(value, dict | list):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _whole_floats(entry)
    elif isinstance(value, float):
        yield value.is_integer()


def _replaced(value: Any, place: _Place, change: Callable[[_Place, float], float]) -> Any:
    """Return a copy with every float replaced by `change`."""
    if isinstance(value, dict):
        return {name: _replaced(entry, (*place, name), change) for name, entry in value.items()}
    if isinstance(value, list):
        return [_replaced(entry, (*place, index), change) for index, entry in enumerate(value)]
    return change(place, value) if isinstance(value, float) else value


def _integer_places(error: jsonschema_rs.ValidationError) -> Iterator[_Place]:
    """Yield the places of integers required by an error. Errors inside all alternatives count, too."""
    match error.kind:
        case Kind.Type(types=types) if "integer" in types:
            yield tuple(error.instance_path)
        case Kind.AnyOf(context=branches) | Kind.OneOfNotValid(context=branches):
            for branch in branches:
                for inner in branch:
                    yield from _integer_places(inner)


def _check_json(value: dict[str, Any]) -> None:
    """Refuse values outside JSON, and too deep nesting."""
    pending: list[tuple[int, object]] = [(1, value)]
    while pending:
        depth, node = pending.pop()
        if depth > MAX_DEPTH:
            raise InvalidArguments((f"the arguments are nested more than {MAX_DEPTH} levels deep",))
        if isinstance(node, dict):
            pending.extend((depth + 1, entry) for pair in node.items() for entry in pair)
            if not all(isinstance(name, str) for name in node):
                raise InvalidArguments(("every name in the arguments must be a string",))
        elif isinstance(node, list):
            pending.extend((depth + 1, entry) for entry in node)
        elif not _is_scalar(node):
            raise InvalidArguments((f"the arguments hold {shorten_text(repr(node), 60)}, which is not JSON",))


def _is_scalar(value: object) -> bool:
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, bool | int)


def _check_integers(value: object) -> None:
    """Refuse integers beyond 64 bits. Most JSON readers would round them, or refuse them themselves."""
    if isinstance(value, dict | list):
        for entry in value.values() if isinstance(value, dict) else value:
            _check_integers(entry)
    elif isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
        raise InvalidArguments(
            (f"{shorten_text(str(value), 30)} does not fit into 64 bits; give a smaller one",)
        )
