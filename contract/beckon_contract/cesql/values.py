"""The values of CESQL, their casts and their errors (CESQL 1.0, sections 3.1, 3.3 and 3.7)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from beckon_contract.events import AttributeValue

Value = bool | int | str
Attributes = Mapping[str, AttributeValue]

MIN_INTEGER = -(2**31)
MAX_INTEGER = 2**31 - 1
_INTEGER = re.compile(r"([+-]?)0*(\d{1,10})", re.ASCII)


class ErrorKind(StrEnum):
    """The kinds of evaluation errors, named as in the conformance kit."""

    MATH = "math"
    CAST = "cast"
    MISSING_ATTRIBUTE = "missingAttribute"
    MISSING_FUNCTION = "missingFunction"
    FUNCTION_EVALUATION = "functionEvaluation"


@dataclass(frozen=True, slots=True)
class CesqlError:
    """One error of an evaluation."""

    kind: ErrorKind
    message: str


@dataclass(frozen=True, slots=True)
class Failure:
    """The result of an expression with an error: value and error."""

    value: Value
    error: CesqlError


Result = Value | Failure
Evaluator = Callable[[Attributes], Result]


def failure(value: Value, kind: ErrorKind, message: str) -> Failure:
    """Return a failure of this kind."""
    return Failure(value, CesqlError(kind, message))


def in_range(number: int) -> int | Failure:
    """Return an arithmetic result, or 0 and an error beyond 32 bits."""
    if MIN_INTEGER <= number <= MAX_INTEGER:
        return number
    return failure(0, ErrorKind.MATH, "the result does not fit a 32-bit integer")


def attribute_value(value: AttributeValue) -> Value:
    """Return an attribute as a CESQL value (section 3.2).

    An integer of more than 32 bits becomes a string.
    """
    if isinstance(value, int) and not MIN_INTEGER <= value <= MAX_INTEGER:
        return str(value)
    return value


def to_integer(value: Result) -> int | Failure:
    """Cast to an integer."""
    if isinstance(value, Failure):
        return Failure(0, value.error)
    if not isinstance(value, str):
        return int(value)
    found = _INTEGER.fullmatch(value)
    number = int(found[1] + found[2]) if found else MAX_INTEGER + 1
    if MIN_INTEGER <= number <= MAX_INTEGER:
        return number
    return failure(0, ErrorKind.CAST, f"{value[:40]!r} is no 32-bit integer")


def to_boolean(value: Result) -> bool | Failure:
    """Cast to a boolean."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Failure):
        return Failure(value=False, error=value.error)
    if isinstance(value, int):
        return value != 0
    lowered = value.lower()
    if lowered in {"true", "false"}:
        return lowered == "true"
    return failure(value=False, kind=ErrorKind.CAST, message=f"{value[:40]!r} is neither true nor false")


def to_string(value: Result) -> str | Failure:
    """Cast to a string."""
    if isinstance(value, str):
        return value
    if isinstance(value, Failure):
        return Failure("", value.error)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def keep(value: Result) -> Result:
    """Cast to any type: change nothing."""
    return value


def to_type_of(value: Result, model: Value) -> Result:
    """Cast to the type of another value."""
    if isinstance(model, str):
        return to_string(value)
    return to_boolean(value) if isinstance(model, bool) else to_integer(value)
