"""The calculator's arithmetic, on decimals: functions, constants, and a parser."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import (
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_UP,
    Context,
    Decimal,
    DecimalException,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
    getcontext,
    localcontext,
)
from types import MappingProxyType
from typing import NamedTuple

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
    with localcontext():  # a requested rounding does not make the result inexact
        return value.quantize(Decimal(1).scaleb(-int(digits)), rounding=ROUND_HALF_UP)


def _log(value: Decimal, base: Decimal = Decimal(10)) -> Decimal:
    return value.log10() if base == 10 else value.ln() / base.ln()


def _average(*values: Decimal) -> Decimal:
    return sum(values, Decimal(0)) / len(values)


def _in_floats(function: Callable[[float], float]) -> MathFunction:
    """Wrap a function that is known to about 15 digits only."""

    def run_in_floats(value: Decimal) -> Decimal:
        result = Decimal(repr(round(function(float(value)), 15)))
        getcontext().flags[Inexact] = True
        return result

    return MathFunction(run_in_floats)


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
        "min": MathFunction(lambda *values: min(values), 1, None),
        "max": MathFunction(lambda *values: max(values), 1, None),
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


PRECISION = 100
SHOWN_DIGITS = 30
MAX_LENGTH = 1000
MAX_DEPTH = 40
MAX_EXPONENT = 10_000

_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<sign>\*\*|//|[-+*/%^!(),])"
)
_SPELLINGS = str.maketrans(
    {"×": "*", "·": "*", "⋅": "*", "∙": "*", "÷": "/", "−": "-", "–": "-", "π": "pi", "√": " sqrt", "=": " "}
)
_WORDS = {
    "x": "*",
    "times": "*",
    "plus": "+",
    "minus": "-",
    "percent": "%",
    "mod": "%",
    "of": "of",
    "**": "^",
}

_PRODUCTS: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
    "*": lambda left, right: left * right,
    "of": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "//": lambda left, right: (left - remainder(left, right)) / right,
    "%": remainder,
}


class ArithmeticResult(NamedTuple):
    """A result as text; `exact` is false where it had to be rounded to `SHOWN_DIGITS`."""

    text: str
    exact: bool


class _Token(NamedTuple):
    text: str
    kind: str
    position: int


class _Amount(NamedTuple):
    value: Decimal  # of a percentage, its hundredth
    percent: bool = False


def calculate(expression: str) -> ArithmeticResult:
    """Evaluate an expression; raise `CannotCalculate` with the place and the cure."""
    if len(expression) > MAX_LENGTH:
        raise CannotCalculate(f"the expression is longer than {MAX_LENGTH} characters")
    context = Context(
        prec=PRECISION,
        Emax=MAX_EXPONENT,
        Emin=-MAX_EXPONENT,
        traps=[DivisionByZero, InvalidOperation, Overflow],
    )
    with localcontext(context) as current:
        try:
            value = _ExpressionParser(_split_tokens(expression)).result()
            exact = not current.flags[Inexact]
            if not exact:
                current.prec = SHOWN_DIGITS
            return ArithmeticResult(_to_text(+value), exact)
        except Overflow:
            raise CannotCalculate(f"the result is larger than 1e{MAX_EXPONENT}") from None


def _split_tokens(expression: str) -> list[_Token]:
    text = expression.translate(_SPELLINGS)
    tokens = []
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        match = _TOKEN.match(text, position)
        if match is None:
            raise CannotCalculate(f"{text[position]!r} at position {position + 1} has no meaning here")
        word = _WORDS.get(match[0].lower(), match[0])
        kind = "sign" if word != match[0] else str(match.lastgroup)
        tokens.append(_Token(word, "sign" if word == "of" else kind, position))
        position = match.end()
    tokens.append(_Token("", "end", len(text)))
    return tokens


class _ExpressionParser:
    """Recursive descent that evaluates as it reads; every method reads one rule of the grammar."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def result(self) -> Decimal:
        value = self._parse_sum().value
        token = self._peek_token()
        if token.text == ",":
            raise CannotCalculate(
                f"a comma at position {token.position + 1}: write 2340.5, without thousands separators"
            )
        if token.kind != "end":
            raise CannotCalculate(
                f"{token.text!r} at position {token.position + 1}: an operator such as * is missing before it"
            )
        return value

    def _parse_sum(self) -> _Amount:
        left = self._parse_product()
        while self._peek_token().text in ("+", "-"):
            sign = self._take_token()
            right = self._parse_product()
            share = right.value
            if right.percent and not left.percent:
                share = _apply_operation(sign, _PRODUCTS["*"], left.value, share)
            value = left.value + share if sign.text == "+" else left.value - share
            left = _Amount(value, left.percent and right.percent)
        return left

    def _parse_product(self) -> _Amount:
        left = self._parse_signed()
        while self._peek_token().text in _PRODUCTS:
            sign = self._take_token()
            right = self._parse_signed()
            left = _Amount(_apply_operation(sign, _PRODUCTS[sign.text], left.value, right.value))
        return left

    def _parse_signed(self) -> _Amount:
        negative = False
        while self._peek_token().text in ("+", "-"):
            negative ^= self._take_token().text == "-"
        amount = self._parse_power()
        return amount._replace(value=-amount.value) if negative else amount

    def _parse_power(self) -> _Amount:
        base = self._parse_postfix()
        if self._peek_token().text != "^":
            return base
        sign = self._take_token()
        exponent = self._parse_nested(self._parse_signed)
        return _Amount(_apply_operation(sign, lambda left, right: left**right, base.value, exponent.value))

    def _parse_postfix(self) -> _Amount:
        amount = self._parse_primary()
        while True:
            token = self._peek_token()
            if token.text == "!":
                self._take_token()
                amount = _Amount(_apply_operation(token, FUNCTIONS["factorial"].run, amount.value))
            elif token.text == "%" and not self._operand_follows():
                self._take_token()
                amount = _Amount(amount.value / 100, percent=True)
            else:
                return amount

    def _parse_primary(self) -> _Amount:
        token = self._take_token()
        if token.kind == "number":
            return _Amount(_apply_operation(token, getcontext().create_decimal, token.text))
        if token.text == "(":
            amount = self._parse_nested(self._parse_sum)
            self._expect_token(")")
            return amount
        if token.kind == "name":
            return _Amount(self._parse_named(token))
        what = f"{token.text!r} at position {token.position + 1}" if token.text else "the end"
        raise CannotCalculate(f"a number is missing before {what}")

    def _parse_named(self, token: _Token) -> Decimal:
        name = token.text.lower()
        if name in CONSTANTS:
            getcontext().flags[Inexact] = True
            return CONSTANTS[name]
        function = FUNCTIONS.get(name)
        if function is None:
            known = ", ".join([*CONSTANTS, *FUNCTIONS])
            raise CannotCalculate(f"{token.text!r} is not known; there are {known}")
        self._expect_token("(", f"{name} needs its argument in parentheses, as {name}(2)")
        arguments = [self._parse_nested(self._parse_sum).value]
        while self._peek_token().text == ",":
            self._take_token()
            arguments.append(self._parse_nested(self._parse_sum).value)
        self._expect_token(")")
        function.check(name, len(arguments))
        return _apply_operation(token, function.run, *arguments)

    def _operand_follows(self) -> bool:
        following = self._tokens[self._next + 1]
        return following.kind in ("number", "name") or following.text == "("

    def _parse_nested(self, rule: Callable[[], _Amount]) -> _Amount:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise CannotCalculate(f"the expression is nested deeper than {MAX_DEPTH} levels")
        amount = rule()
        self._depth -= 1
        return amount

    def _expect_token(self, text: str, message: str | None = None) -> None:
        token = self._peek_token()
        if token.text != text:
            raise CannotCalculate(message or f"{text!r} is missing at position {token.position + 1}")
        self._take_token()

    def _peek_token(self) -> _Token:
        return self._tokens[self._next]

    def _take_token(self) -> _Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token


def _apply_operation(token: _Token, operation: Callable[..., Decimal], *values: object) -> Decimal:
    """Carry out one operation, with its failure in the user's terms."""
    where = f"{token.text!r} at position {token.position + 1}"
    try:
        result = operation(*values)
    except DivisionByZero:
        raise CannotCalculate(f"division by zero: {where}") from None
    except Overflow:
        raise CannotCalculate(f"the result of {where} is larger than 1e{MAX_EXPONENT}") from None
    except (DecimalException, OverflowError, ValueError) as error:
        if isinstance(error, CannotCalculate):
            raise
        raise CannotCalculate(f"{where} is not defined for these numbers") from None
    if not result.is_finite():
        raise CannotCalculate(f"{where} is not defined for these numbers")
    return result


def _to_text(value: Decimal) -> str:
    if value.is_zero():
        return "0"
    plain = value.normalize()
    return f"{plain:f}" if -20 <= plain.adjusted() < 120 else f"{plain:E}"
