"""The functions and constants of the calculator, on decimals."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_UP,
    Decimal,
    Inexact,
    getcontext,
    localcontext,
)
from types import MappingProxyType

MAX_FACTORIAL = 1000

CONSTANTS: Mapping[str, Decimal] = MappingProxyType(
    {
        "pi": Decimal(
            "3.1415926535897932384626433832795028841971693993751"
            "058209749445923078164062862089986280348253421170680"
        ),
        "e": Decimal(
            "2.7182818284590452353602874713526624977572470936999"
            "595749669676277240766303535475945713821785251664274"
        ),
    }
)


class CannotCalculate(ValueError):
    """An expression without a value; the message says where and what to write instead."""


@dataclass(frozen=True, slots=True)
class MathFunction:
    """A function and how many arguments it takes; `most` is `None` for any number."""

    run: Callable[..., Decimal]
    least: int = 1
    most: int | None = 1

    def check(self, name: str, given: int) -> None:
        """Raise `CannotCalculate` where the number of arguments is wrong."""
        if given < self.least or (self.most is not None and given > self.most):
            wanted = str(self.least) if self.least == self.most else f"{self.least} to {self.most or 'many'}"
            raise CannotCalculate(f"{name} takes {wanted} arguments, not {given}")


def remainder(left: Decimal, right: Decimal) -> Decimal:
    """Return the remainder with the sign of the divisor, as mathematicians count it."""
    rest = left % right
    return rest + right if rest and (rest < 0) != (right < 0) else rest


def _factorial(value: Decimal) -> Decimal:
    if value != value.to_integral_value() or not 0 <= value <= MAX_FACTORIAL:
        raise CannotCalculate(f"a factorial takes a whole number from 0 to {MAX_FACTORIAL}")
    return getcontext().create_decimal(math.factorial(int(value)))


def _round(value: Decimal, digits: Decimal = Decimal(0)) -> Decimal:
    if digits != digits.to_integral_value() or abs(digits) > 50:
        raise CannotCalculate("round takes a whole number of digits from -50 to 50")
    with localcontext():  # a rounding that was asked for does not make the result inexact
        return value.quantize(Decimal(1).scaleb(-int(digits)), rounding=ROUND_HALF_UP)


def _log(value: Decimal, base: Decimal = Decimal(10)) -> Decimal:
    return value.log10() if base == 10 else value.ln() / base.ln()


def _average(*values: Decimal) -> Decimal:
    return sum(values, Decimal(0)) / len(values)


def _in_floats(function: Callable[[float], float]) -> MathFunction:
    """Wrap a function that is known to about 15 digits only."""

    def run(value: Decimal) -> Decimal:
        result = Decimal(repr(round(function(float(value)), 15)))
        getcontext().flags[Inexact] = True
        return result

    return MathFunction(run)


def _to_integral(rounding: str) -> MathFunction:
    return MathFunction(lambda value: value.to_integral_value(rounding=rounding))


FUNCTIONS: Mapping[str, MathFunction] = MappingProxyType(
    {
        "sqrt": MathFunction(lambda value: value.sqrt()),
        "abs": MathFunction(abs),
        "round": MathFunction(_round, 1, 2),
        "floor": _to_integral(ROUND_FLOOR),
        "ceil": _to_integral(ROUND_CEILING),
        "trunc": _to_integral(ROUND_DOWN),
        "min": MathFunction(min, 1, None),
        "max": MathFunction(max, 1, None),
        "sum": MathFunction(lambda *values: sum(values, Decimal(0)), 1, None),
        "avg": MathFunction(_average, 1, None),
        "factorial": MathFunction(_factorial),
        "exp": MathFunction(lambda value: value.exp()),
        "ln": MathFunction(lambda value: value.ln()),
        "log": MathFunction(_log, 1, 2),
        "log2": MathFunction(lambda value: value.ln() / Decimal(2).ln()),
        "sin": _in_floats(math.sin),
        "cos": _in_floats(math.cos),
        "tan": _in_floats(math.tan),
        "asin": _in_floats(math.asin),
        "acos": _in_floats(math.acos),
        "atan": _in_floats(math.atan),
    }
)
