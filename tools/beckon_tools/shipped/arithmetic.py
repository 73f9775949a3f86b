"""Arithmetic as people write it, in decimals, bounded in size and time.

    sum        := product (("+" | "-") product)*
    product    := signed (("*" | "/" | "//" | "%" | "of") signed)*
    signed     := ("+" | "-")* power
    power      := postfix ("^" signed)?
    postfix    := primary ("%" | "!")*
    primary    := number | constant | function "(" sum ("," sum)* ")" | "(" sum ")"

A percentage that is added or subtracted is one of what stands before it: 200 + 5% is 210. A "%"
before an operand is the remainder. A parser of its own rather than Python's: its numbers stay
decimal (0.1 + 0.2 is 0.3), and its depth is bounded before anything is built.
"""

import re
from collections.abc import Callable
from decimal import (
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
from typing import NamedTuple

from beckon_tools.shipped.functions import CONSTANTS, FUNCTIONS, CannotCalculate, remainder

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
            value = _ExpressionParser(_tokens(expression)).result()
            exact = not current.flags[Inexact]
            if not exact:
                current.prec = SHOWN_DIGITS
            return ArithmeticResult(_text(+value), exact)
        except Overflow:
            raise CannotCalculate(f"the result is larger than 1e{MAX_EXPONENT}") from None


def _tokens(expression: str) -> list[_Token]:
    text = expression.translate(_SPELLINGS)
    found = []
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
        found.append(_Token(word, "sign" if word == "of" else kind, position))
        position = match.end()
    found.append(_Token("", "end", len(text)))
    return found


class _ExpressionParser:
    """Recursive descent that evaluates as it reads; every method reads one rule of the grammar."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def result(self) -> Decimal:
        value = self._sum().value
        token = self._peek()
        if token.text == ",":
            raise CannotCalculate(
                f"a comma at position {token.position + 1}: write 2340.5, without thousands separators"
            )
        if token.kind != "end":
            raise CannotCalculate(
                f"{token.text!r} at position {token.position + 1}: an operator such as * is missing before it"
            )
        return value

    def _sum(self) -> _Amount:
        left = self._product()
        while self._peek().text in ("+", "-"):
            sign = self._take()
            right = self._product()
            share = right.value
            if right.percent and not left.percent:
                share = _apply(sign, _PRODUCTS["*"], left.value, share)
            value = left.value + share if sign.text == "+" else left.value - share
            left = _Amount(value, left.percent and right.percent)
        return left

    def _product(self) -> _Amount:
        left = self._signed()
        while self._peek().text in _PRODUCTS:
            sign = self._take()
            right = self._signed()
            left = _Amount(_apply(sign, _PRODUCTS[sign.text], left.value, right.value))
        return left

    def _signed(self) -> _Amount:
        negative = False
        while self._peek().text in ("+", "-"):
            negative ^= self._take().text == "-"
        amount = self._power()
        return amount._replace(value=-amount.value) if negative else amount

    def _power(self) -> _Amount:
        base = self._postfix()
        if self._peek().text != "^":
            return base
        sign = self._take()
        exponent = self._nested(self._signed)
        return _Amount(_apply(sign, lambda left, right: left**right, base.value, exponent.value))

    def _postfix(self) -> _Amount:
        amount = self._primary()
        while True:
            token = self._peek()
            if token.text == "!":
                self._take()
                amount = _Amount(_apply(token, FUNCTIONS["factorial"].run, amount.value))
            elif token.text == "%" and not self._operand_follows():
                self._take()
                amount = _Amount(amount.value / 100, percent=True)
            else:
                return amount

    def _primary(self) -> _Amount:
        token = self._take()
        if token.kind == "number":
            return _Amount(_apply(token, getcontext().create_decimal, token.text))
        if token.text == "(":
            amount = self._nested(self._sum)
            self._expect(")")
            return amount
        if token.kind == "name":
            return _Amount(self._named(token))
        what = f"{token.text!r} at position {token.position + 1}" if token.text else "the end"
        raise CannotCalculate(f"a number is missing before {what}")

    def _named(self, token: _Token) -> Decimal:
        name = token.text.lower()
        if name in CONSTANTS:
            getcontext().flags[Inexact] = True
            return CONSTANTS[name]
        function = FUNCTIONS.get(name)
        if function is None:
            known = ", ".join([*CONSTANTS, *FUNCTIONS])
            raise CannotCalculate(f"{token.text!r} is not known; there are {known}")
        self._expect("(", f"{name} needs its argument in parentheses, as {name}(2)")
        arguments = [self._nested(self._sum).value]
        while self._peek().text == ",":
            self._take()
            arguments.append(self._nested(self._sum).value)
        self._expect(")")
        function.check(name, len(arguments))
        return _apply(token, function.run, *arguments)

    def _operand_follows(self) -> bool:
        following = self._tokens[self._next + 1]
        return following.kind in ("number", "name") or following.text == "("

    def _nested(self, rule: Callable[[], _Amount]) -> _Amount:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise CannotCalculate(f"the expression is nested deeper than {MAX_DEPTH} levels")
        amount = rule()
        self._depth -= 1
        return amount

    def _expect(self, text: str, message: str | None = None) -> None:
        token = self._peek()
        if token.text != text:
            raise CannotCalculate(message or f"{text!r} is missing at position {token.position + 1}")
        self._take()

    def _peek(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token


def _apply(token: _Token, operation: Callable[..., Decimal], *values: object) -> Decimal:
    """Carry out one operation, its failure told in the user's terms."""
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


def _text(value: Decimal) -> str:
    if value.is_zero():
        return "0"
    plain = value.normalize()
    return f"{plain:f}" if -20 <= plain.adjusted() < 120 else f"{plain:E}"
