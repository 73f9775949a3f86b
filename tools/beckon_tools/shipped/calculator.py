"""The tool `calculator`: arithmetic that a language model should not do in its head."""

from typing import Annotated

from pydantic import Field

from beckon_tools.declaration import AnyTool, Hints, tool
from beckon_tools.errors import ToolError
from beckon_tools.settings import Settings
from beckon_tools.shipped.arithmetic import MAX_LENGTH, CannotCalculate, calculate

_EXPRESSION = (
    'The expression, e.g. "17% of 2340", "80 + 5%", "(3.5 + 4) * 2^10" or "sqrt(2) / 3". Operators: '
    "+ - * / // ^ ! and % (a percentage, or the remainder before a number). Constants: pi, e. Functions: "
    "sqrt, abs, round, floor, ceil, trunc, min, max, sum, avg, factorial, exp, ln, log2, log (base 10, or "
    "log(x, base)), sin, cos, tan, asin, acos, atan (radians). No thousands separators."
)


@tool(type="calculator", hints=Hints(read_only=True, idempotent=True))
async def calculator(
    expression: Annotated[
        str,
        Field(
            description=_EXPRESSION,
            min_length=1,
            max_length=MAX_LENGTH,
        ),
    ],
) -> dict[str, object]:
    """Calculate an arithmetic expression exactly: sums, products, percentages, powers, roots, logarithms."""
    try:
        answer = calculate(expression)
    except CannotCalculate as error:
        raise ToolError(f"cannot calculate {expression!r}: {error}") from None
    return {"expression": expression, "result": answer.text, "exact": answer.exact}


def build(_settings: Settings) -> AnyTool:
    """Return the tool; it needs no settings."""
    return calculator
