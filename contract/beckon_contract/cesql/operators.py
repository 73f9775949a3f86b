"""The operators of CESQL (CESQL 1.0, section 3.4), in fail-fast mode (section 4.1).

An error ends the evaluation: every operator around it gives the zero value of its own type, and the error.
A `Step` applies a binary operator to its left side, already evaluated, and to the expression on its right,
which AND and OR may leave unevaluated.
"""

import operator
from collections.abc import Callable, Mapping, Sequence

from beckon_contract.cesql.values import (
    Attributes,
    ErrorKind,
    Evaluator,
    Failure,
    Result,
    attribute_value,
    failure,
    in_range,
    to_boolean,
    to_integer,
    to_string,
    to_type_of,
)

Step = Callable[[Result, Evaluator, Attributes], Result]
_REQUIRED = frozenset({"id", "source", "specversion", "type"})


def chain(first: Evaluator, rest: Sequence[tuple[Step, Evaluator]]) -> Evaluator:
    """Apply binary operators of one precedence from left to right, however many."""

    def evaluate(attributes: Attributes) -> Result:
        result = first(attributes)
        for step, operand in rest:
            result = step(result, operand, attributes)
        return result

    return evaluate


def literal(value: Result) -> Evaluator:
    """Give the same result for every event."""
    return lambda _: value


def attribute(name: str) -> Evaluator:
    """Give the value of an attribute; a missing one is an error with the value false."""
    missing = failure(
        value=False, kind=ErrorKind.MISSING_ATTRIBUTE, message=f"the event has no attribute {name!r}"
    )

    def evaluate(attributes: Attributes) -> Result:
        value = attributes.get(name)
        return missing if value is None else attribute_value(value)

    return evaluate


def exists(name: str) -> Evaluator:
    """Give true for a present attribute, and always for required ones."""
    return lambda attributes: name in _REQUIRED or attributes.get(name) is not None


def invert(operand: Evaluator) -> Evaluator:
    """NOT. The conformance kit wants `NOT 10` to be true with a cast error: integers are not cast here."""

    def evaluate(attributes: Attributes) -> Result:
        value = operand(attributes)
        if isinstance(value, int) and not isinstance(value, bool):
            return failure(value=True, kind=ErrorKind.CAST, message=f"NOT {value}: an integer is no boolean")
        found = to_boolean(value)
        return found if isinstance(found, Failure) else not found

    return evaluate


def negate(operand: Evaluator) -> Evaluator:
    """Unary minus."""

    def evaluate(attributes: Attributes) -> Result:
        value = to_integer(operand(attributes))
        return value if isinstance(value, Failure) else in_range(-value)

    return evaluate


def matches(operand: Evaluator, matcher: Callable[[str], bool], *, negated: bool) -> Evaluator:
    """LIKE and NOT LIKE, with the pattern already compiled."""

    def evaluate(attributes: Attributes) -> Result:
        text = to_string(operand(attributes))
        return to_boolean(text) if isinstance(text, Failure) else matcher(text) != negated

    return evaluate


def contained(operand: Evaluator, elements: Sequence[Evaluator], *, negated: bool) -> Evaluator:
    """IN and NOT IN: each element is cast to the type of the left side."""

    def evaluate(attributes: Attributes) -> Result:
        value = operand(attributes)
        if isinstance(value, Failure):
            return to_boolean(value)
        for element in elements:
            other = to_type_of(element(attributes), value)
            if isinstance(other, Failure):
                return to_boolean(other)
            if other == value:
                return not negated
        return negated

    return evaluate


def _and(left: Result, right: Evaluator, attributes: Attributes) -> Result:
    value = to_boolean(left)
    return to_boolean(right(attributes)) if value is True else value


def _or(left: Result, right: Evaluator, attributes: Attributes) -> Result:
    value = to_boolean(left)
    return to_boolean(right(attributes)) if value is False else value


def _xor(left: Result, right: Evaluator, attributes: Attributes) -> Result:
    first, second = to_boolean(left), to_boolean(right(attributes))
    if isinstance(first, Failure) or isinstance(second, Failure):
        return first if isinstance(first, Failure) else second
    return first != second


def _equality(*, negated: bool) -> Step:
    """= and !=: the left side is cast to the type of the right one (section 3.7, rule 2)."""

    def step(left: Result, right: Evaluator, attributes: Attributes) -> Result:
        if isinstance(left, Failure):
            return to_boolean(left)
        second = right(attributes)
        if isinstance(second, Failure):
            return to_boolean(second)
        first = to_type_of(left, second)
        return to_boolean(first) if isinstance(first, Failure) else (first == second) != negated

    return step


def _order(compare: Callable[[int, int], bool]) -> Step:
    """<, <=, > and >= compare integers only."""

    def step(left: Result, right: Evaluator, attributes: Attributes) -> Result:
        first = to_integer(left)
        if isinstance(first, Failure):
            return to_boolean(first)
        second = to_integer(right(attributes))
        return to_boolean(second) if isinstance(second, Failure) else compare(first, second)

    return step


def _arithmetic(compute: Callable[[int, int], int | Failure]) -> Step:
    def step(left: Result, right: Evaluator, attributes: Attributes) -> Result:
        first = to_integer(left)
        if isinstance(first, Failure):
            return first
        second = to_integer(right(attributes))
        return second if isinstance(second, Failure) else compute(first, second)

    return step


def _quotient(dividend: int, divisor: int) -> int | Failure:
    """Divide and round towards zero."""
    if divisor == 0:
        return failure(0, ErrorKind.MATH, "division by zero")
    quotient = abs(dividend) // abs(divisor)
    return in_range(quotient if (dividend < 0) == (divisor < 0) else -quotient)


def _remainder(dividend: int, divisor: int) -> int | Failure:
    """Return the remainder with the sign of the dividend."""
    if divisor == 0:
        return failure(0, ErrorKind.MATH, "division by zero")
    remainder = abs(dividend) % abs(divisor)
    return remainder if dividend >= 0 else -remainder


STEPS: Mapping[str, Step] = {
    "AND": _and,
    "OR": _or,
    "XOR": _xor,
    "=": _equality(negated=False),
    "!=": _equality(negated=True),
    "<>": _equality(negated=True),
    "<": _order(operator.lt),
    "<=": _order(operator.le),
    ">": _order(operator.gt),
    ">=": _order(operator.ge),
    "+": _arithmetic(lambda x, y: in_range(x + y)),
    "-": _arithmetic(lambda x, y: in_range(x - y)),
    "*": _arithmetic(lambda x, y: in_range(x * y)),
    "/": _arithmetic(_quotient),
    "%": _arithmetic(_remainder),
}
