import contextlib
import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from beckon_tools import ToolError
from beckon_tools.shipped.arithmetic import MAX_LENGTH, CannotCalculate, calculate
from beckon_tools.shipped.calculator import calculator
from tests.tools.serving import call, calling


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("17% of 2340", "397.8"),
        ("2340 + 5%", "2457"),
        ("2340 - 5%", "2223"),
        ("80 * 5%", "4"),
        ("5%", "0.05"),
        ("50% + 25%", "0.75"),
        ("50% of 20% of 10", "1"),
        ("12 percent of 50", "6"),
        ("100 - 20% of 50", "90"),
        ("-5% + 100", "99.95"),
        ("10 % 3", "1"),
        ("10 mod 3", "1"),
        ("-7 % 3", "2"),
        ("7 % - 3", "-2.93"),
        ("0.1 + 0.2", "0.3"),
        ("2 + 3 * 4", "14"),
        ("(2 + 3) * 4", "20"),
        ("2^10", "1024"),
        ("2**10", "1024"),
        ("2^3^2", "512"),
        ("-2^2", "-4"),
        ("2^-2", "0.25"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("6 × 7", "42"),
        ("6 x 7", "42"),
        ("6 ÷ 4", "1.5"),
        ("5 − 3", "2"),
        ("5!", "120"),
        ("3!!", "720"),
        (".5 + 1.", "1.5"),
        ("1.5e3", "1500"),
        ("007", "7"),
        ("sqrt(2)^2", "2"),
        ("√(16)", "4"),
        ("1/3", "0.333333333333333333333333333333"),
        ("1/3*3", "1"),
        ("pi", "3.14159265358979323846264338328"),
        ("max(1, 2, 3) - min(4, 5)", "-1"),
        ("min(3) + max(4) + sum(5) + avg(6)", "18"),
        ("sum(1,2,3) / avg(2,4)", "2"),
        ("round(2.5) + round(2.345, 2)", "5.35"),
        ("floor(-1.5) + ceil(1.2) + trunc(-1.7) + abs(-3)", "2"),
        ("log(1000)", "3"),
        ("log(8, 2)", "3"),
        ("log2(1024)", "10"),
        ("ln(e)", "1"),
        ("sin(pi / 6)", "0.5"),
        ("sin(pi)", "0"),
        ("2 times 3 plus 4 minus 1", "9"),
        ("12 =", "12"),
        ("1e-99999", "0"),
        ("10^40 * 10^40", "1" + "0" * 80),
    ],
)
def test_expressions_have_the_values_that_people_expect(expression: str, result: str) -> None:
    assert calculate(expression).text == result


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("", "a number is missing before the end"),
        ("2 +", "a number is missing before the end"),
        ("(2 + 3", "')' is missing"),
        ("2 + 3)", "')' at position 6"),
        ("2,340 + 1", "without thousands separators"),
        ("2(3)", "an operator such as * is missing"),
        ("2 3", "an operator such as * is missing"),
        ("sqrt 16", "sqrt needs its argument in parentheses"),
        ("foo(1)", "'foo' is not known"),
        ("import os", "'import' is not known"),
        ("__import__('os')", "has no meaning here"),
        ("1/0", "division by zero: '/' at position 2"),
        ("5 % 0", "'%' at position 3 is not defined"),
        ("0/0", "not defined"),
        ("sqrt(-1)", "not defined"),
        ("ln(0)", "not defined"),
        ("asin(2)", "not defined"),
        ("9^9^9^9", "larger than 1e10000"),
        ("1e99999", "larger than 1e10000"),
        ("9e9999 * 9 + 9e9999 * 9", "larger than 1e10000"),
        ("5000!", "from 0 to 1000"),
        ("1.5!", "from 0 to 1000"),
        ("round(1, 99)", "-50 to 50"),
        ("sqrt(1, 2)", "sqrt takes 1 arguments, not 2"),
        ("(" * 50 + "1" + ")" * 50, "nested deeper"),
        ("2^" * 100 + "1", "nested deeper"),
        ("1" * (MAX_LENGTH + 1), "longer than"),
        ("$5", "'$' at position 1"),
        ("٣ + 1", "has no meaning here"),
    ],
)
def test_what_has_no_value_is_reported_with_its_place(expression: str, shown: str) -> None:
    with pytest.raises(CannotCalculate) as refused:
        calculate(expression)
    assert shown in str(refused.value)


@pytest.mark.parametrize(
    ("expression", "exact"), [("0.1 + 0.2", True), ("1/3", False), ("2^100", True), ("sqrt(2)", False)]
)
def test_it_is_reported_whether_a_result_was_rounded(expression: str, exact: bool) -> None:
    assert calculate(expression).exact == exact


numbers = st.one_of(
    st.integers(0, 10**9).map(str),
    st.decimals("0", "100000", places=4, allow_nan=False).map(lambda number: f"{number:f}"),
)
expressions = st.recursive(
    numbers,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/"]), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        inner.map(lambda operand: f"-{operand}"),
    ),
    max_leaves=12,
)


def exactly(expression: str) -> Fraction:
    """Evaluate in Python's fractions: the second opinion."""
    rational = re.sub(r"\d+(?:\.\d+)?", lambda match: f"F('{match[0]}')", expression)
    return Fraction(eval(rational, {"F": Fraction}))


@given(expressions)
def test_the_result_agrees_with_exact_fractions(expression: str) -> None:
    try:
        expected = exactly(expression)
    except ZeroDivisionError:
        with pytest.raises(CannotCalculate):
            calculate(expression)
        return
    answer = calculate(expression)
    result = Fraction(Decimal(answer.text))
    if answer.exact:
        assert result == expected
    else:
        assert abs(result - expected) <= abs(expected) * Fraction(1, 10**25) + Fraction(1, 10**60)


fragments = st.lists(
    st.sampled_from(
        ["1", "2.5", "9e99", "(", ")", "+", "-", "*", "/", "//", "^", "**", "%", "!", ",", " of ", "sqrt",
         "ln(", "round(", "max(", "factorial(", "tan(", "exp(", "pi", "e", " mod ", "x",
         "×", "0", "log(", "=", " "]
    ),
    max_size=40,
)  # fmt: skip


@given(st.one_of(st.text(max_size=60), fragments.map("".join)))
@example("2^0.5!")
@example("exp(9e99)")
@example("tan(9e9999)")
@example("0^0")
@example("e!")
@example("1e9999//0.3")
@example("(-8)^(1/3)")
def test_any_text_has_a_value_or_a_clear_error(text: str) -> None:
    with contextlib.suppress(CannotCalculate):
        assert Decimal(calculate(text).text).is_finite()


async def test_the_tool_shows_the_expression_that_it_cannot_calculate() -> None:
    with pytest.raises(ToolError, match=r"cannot calculate '1/0': division by zero"):
        await calculator("1/0")


async def test_the_tool_answers_over_http() -> None:
    async with calling(calculator) as caller:
        result = await caller.result(call("calculator", {"expression": "17% of 2340"}))
    assert result == {"expression": "17% of 2340", "result": "397.8", "exact": True}
