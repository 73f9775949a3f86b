"""Numbers in the arguments of a call: exact, or refused by name."""

from dataclasses import replace
from typing import Any

import pytest

from beckon_tools import tool
from tests.tools.serving import call, calling


@tool(type="weigh")
async def weigh(weight: int, more: Any = None) -> int:
    """Weigh something."""
    return weight + int(more)


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e400", '{"deep": [NaN]}'])
async def test_an_argument_that_is_no_number_is_refused_by_name(text: str) -> None:
    event = replace(call("weigh"), data=f'{{"weight": 1, "more": {text}}}'.encode())
    async with calling(weigh) as caller:
        message = await caller.refusal(event)
    assert "NaN is not JSON" in message or "Infinity" in message


async def test_a_long_integer_is_the_argument_that_was_sent() -> None:
    async with calling(weigh) as caller:
        assert await caller.result(call("weigh", {"weight": 2**80, "more": 1.0})) == 2**80 + 1
