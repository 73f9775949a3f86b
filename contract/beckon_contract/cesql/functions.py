"""The functions of CESQL (CESQL 1.0, section 3.5).

The casts called by its conformance kit are included. IS_INT and IS_BOOL are those of the Go engine that
Knative's brokers run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from beckon_contract.cesql.values import (
    MAX_INTEGER,
    MIN_INTEGER,
    Attributes,
    ErrorKind,
    Evaluator,
    Failure,
    Result,
    Value,
    failure,
    keep,
    to_boolean,
    to_integer,
    to_string,
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
    """Call a function by its upper-case name.

    One that does not exist is an error with the value false.
    """
    found = [function for function in _FUNCTIONS.get(name, ()) if function.takes(len(arguments))]
    if not found:
        message = f"there is no function {name} of {len(arguments)} arguments"
        missing = failure(value=False, kind=ErrorKind.MISSING_FUNCTION, message=message)
        return lambda _: missing
    function = found[0]
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
