"""CESQL expressions: values, casts and errors (CESQL 1.0, sections 3.1, 3.3 and 3.7).

The limits and the syntax error are known without loading the grammar.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from beckon_contract.cloudevents.events import AttributeValue

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
    match = _INTEGER.fullmatch(value)
    number = int(match[1] + match[2]) if match else MAX_INTEGER + 1
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


MAX_LENGTH = 4096
MAX_DEPTH = 64


class CesqlSyntaxError(ValueError):
    """A text is no CESQL expression; `position` counts its characters from 0."""

    def __init__(self, message: str, position: int = 0) -> None:
        self.position = position
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of an expression for one event. There is always a value, with all errors."""

    value: Value
    errors: tuple[CesqlError, ...] = ()


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression, with warnings about likely mistakes.

    `warnings` name the parts that probably do not do what they seem to say.

    `evaluator` gives the bare value, or a `Failure` where there was an error.
    """

    text: str
    evaluator: Evaluator
    warnings: tuple[str, ...] = ()

    def evaluate(self, attributes: Attributes) -> Evaluation:
        """Return the value for an event with these attributes; it never raises."""
        result = self.evaluator(attributes)
        if isinstance(result, Failure):
            return Evaluation(result.value, (result.error,))
        return Evaluation(result)
