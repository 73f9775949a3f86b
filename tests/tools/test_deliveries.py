"""A reply has the number of deliveries of its call, if there was more than one."""

import pytest

from beckon_contract.cloudevents.extensions import DELIVERIES, deliveries_attribute, read_deliveries
from beckon_tools import Hints, Retry, tool
from beckon_tools.app import Deliveries
from beckon_tools.declaration import AnyTool
from beckon_tools.outcomes.ledger import CallKey
from tests.tools.serving import call, calling


class Moody:
    """A tool that fails so often, and then answers."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)

    def tool(self) -> AnyTool:
        @tool(type="moody", hints=Hints(idempotent=True))
        async def moody() -> str:
            """Fail, and then answer."""
            if self.failures:
                raise self.failures.pop(0)
            return "at last"

        return moody


async def test_a_call_that_came_once_says_nothing_of_it() -> None:
    async with calling(Moody().tool()) as caller:
        reply = await caller.reply(call("moody", {}))

    assert DELIVERIES not in reply.extensions


async def test_deliveries_that_failed_are_reported_by_the_reply_that_came_at_last() -> None:
    async with calling(Moody(Retry("not now"), RuntimeError("broken")).tool()) as caller:
        statuses = [(await caller.post(call("moody", {}))).status_code for _ in range(2)]
        reply = await caller.reply(call("moody", {}))

    assert statuses == [503, 500]
    assert reply.json() == "at last"
    assert read_deliveries(reply.extensions) == 3


async def test_a_repetition_of_what_was_answered_counts_too_and_another_call_does_not() -> None:
    async with calling(Moody().tool()) as caller:
        await caller.reply(call("moody", {}))
        again = await caller.reply(call("moody", {}))
        other = await caller.reply(call("moody", {}, id="other"))

    assert read_deliveries(again.extensions) == 2
    assert DELIVERIES not in other.extensions


async def test_deliveries_that_came_while_the_call_ran_are_reported_by_every_reply() -> None:
    deliveries, key = Deliveries(capacity=9), CallKey("t", "s", "1")
    async with deliveries.count_arrival(key) as first, deliveries.count_arrival(key) as second:
        assert [await first(), await second()] == [2, 2]


async def test_no_more_calls_are_remembered_than_there_is_room_for() -> None:
    deliveries = Deliveries(capacity=2)

    async def come(name: str) -> int:
        async with deliveries.count_arrival(CallKey("t", "s", name)) as times:
            return await times()

    counted = [await come(name) for name in ("a", "b", "a", "c", "a", "b")]

    assert counted == [1, 1, 2, 1, 3, 1]


@pytest.mark.parametrize("number", [2, 3, 2**31 - 1])
@pytest.mark.parametrize("write", [int, str], ids=["structured", "binary"])
def test_what_a_reply_shows_is_read_in_either_mode(number: int, write: type[int] | type[str]) -> None:
    assert read_deliveries({DELIVERIES: write(deliveries_attribute(number)[DELIVERIES])}) == number


@pytest.mark.parametrize("value", [None, 0, 1, -3, True, 2**31, "2.5", "²", "many", "", "9" * 5000, 3.0])
def test_what_is_no_number_of_deliveries_is_none(value: object) -> None:
    assert read_deliveries({DELIVERIES: value}) is None
