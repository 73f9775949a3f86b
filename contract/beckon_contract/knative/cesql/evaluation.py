"""The functions and operators of CESQL (CESQL 1.0, sections 3.4 and 3.5).

The casts called by its conformance kit are included. IS_INT and IS_BOOL are those of the Go engine that
Knative's brokers run.

Evaluation is in fail-fast mode (section 4.1): an error ends the evaluation, and every operator around it
gives the zero value of its own type, and the error. A `Step` applies a binary operator to its left side,
already evaluated, and to the expression on its right, which AND and OR may leave unevaluated.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from beckon_contract.knative.cesql.expression import (
    MAX_INTEGER,
    MIN_INTEGER,
    Attributes,
    ErrorKind,
    Evaluator,
    Failure,
    Result,
    Value,
    attribute_value,
    failure,
    in_range,
    keep,
    to_boolean,
    to_integer,
    to_string,
    to_type_of,
)

Cast = Callable[[Result], Result]
# The characters with the Unicode property White_Space; str.strip() takes control characters too.
_WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


@dataclass(frozen=True, slots=True)
class Function:
    """A function: the casts of its parameters, of any further ones, its zero value and its code."""

    parameters: tuple[Cast, ...]
    zero: Value
    compute: Callable[..., Result]
    further: Cast | None = None

    def takes(self, count: int) -> bool:
        """Return True if it takes this number of arguments."""
        return count == len(self.parameters) or (self.further is not None and count > len(self.parameters))


def call(name: str, arguments: Sequence[Evaluator]) -> Evaluator:
    """Call a function by its upper-case name. One that does not exist is an error with the value false."""
    overloads = [function for function in _FUNCTIONS.get(name, ()) if function.takes(len(arguments))]
    if not overloads:
        message = f"there is no function {name} of {len(arguments)} arguments"
        missing = failure(value=False, kind=ErrorKind.MISSING_FUNCTION, message=message)
        return lambda _: missing
    function = overloads[0]
    further = (function.further or keep,) * (len(arguments) - len(function.parameters))
    pairs = tuple(zip(function.parameters + further, arguments, strict=True))

    def evaluate(attributes: Attributes) -> Result:
        values: list[Value] = []
        for cast, argument in pairs:
            value = cast(argument(attributes))
            if isinstance(value, Failure):
                return Failure(function.zero, value.error)
            values.append(value)
        return function.compute(*values)

    return evaluate


def _absolute(number: int) -> Result:
    if number == MIN_INTEGER:
        return failure(MAX_INTEGER, ErrorKind.MATH, f"ABS({number}) does not fit a 32-bit integer")
    return abs(number)


def _left(text: str, count: int) -> Result:
    if count < 0:
        return failure(text, ErrorKind.FUNCTION_EVALUATION, f"LEFT: the length {count} is negative")
    return text[:count]


def _right(text: str, count: int) -> Result:
    if count < 0:
        return failure(text, ErrorKind.FUNCTION_EVALUATION, f"RIGHT: the length {count} is negative")
    return text[max(len(text) - count, 0) :]


def _substring(text: str, position: int, length: int = MAX_INTEGER) -> Result:
    """Cut from a position counted from 1, or negative from the end."""
    if abs(position) > len(text) or length < 0:
        message = f"SUBSTRING: no {length} characters at {position} of {len(text)}"
        return failure("", ErrorKind.FUNCTION_EVALUATION, message)
    if position == 0:
        return ""
    start = position - 1 if position > 0 else len(text) + position
    return text[start : start + length]


def _can(cast: Cast) -> Callable[[Value], Result]:
    return lambda value: not isinstance(cast(value), Failure)


_FUNCTIONS: Mapping[str, tuple[Function, ...]] = {
    "ABS": (Function((to_integer,), 0, _absolute),),
    "BOOL": (Function((keep,), zero=False, compute=to_boolean),),
    "CONCAT": (Function((), "", lambda *texts: "".join(texts), further=to_string),),
    "CONCAT_WS": (Function((to_string,), "", lambda mark, *texts: mark.join(texts), further=to_string),),
    "INT": (Function((keep,), 0, to_integer),),
    "IS_BOOL": (Function((keep,), zero=False, compute=_can(to_boolean)),),
    "IS_INT": (Function((keep,), zero=False, compute=_can(to_integer)),),
    "LEFT": (Function((to_string, to_integer), "", _left),),
    "LENGTH": (Function((to_string,), 0, len),),
    "LOWER": (Function((to_string,), "", str.lower),),
    "RIGHT": (Function((to_string, to_integer), "", _right),),
    "STRING": (Function((keep,), "", to_string),),
    "SUBSTRING": (
        Function((to_string, to_integer), "", _substring),
        Function((to_string, to_integer, to_integer), "", _substring),
    ),
    "TRIM": (Function((to_string,), "", lambda text: text.strip(_WHITE_SPACE)),),
    "UPPER": (Function((to_string,), "", str.upper),),
}


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
        converted = to_boolean(value)
        return converted if isinstance(converted, Failure) else not converted

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
