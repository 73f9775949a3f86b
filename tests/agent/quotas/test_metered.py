"""Tokens of a model are counted, whatever becomes of its answer."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import pytest

from beckon_agent.auth.quotas import LimitReached, Quotas, meter_model
from beckon_agent.core.model_types import Message, Turn, Usage
from beckon_agent.core.run_events import StreamItem, TextDelta
from beckon_agent.core.run_types import Agent, Options
from beckon_agent.core.run_types import Limits as RunLimits
from beckon_contract.resources.tools import Tool
from tests.agent.auth.closed_service import terms
from tests.agent.auth.counters import CountersInMemory

QUESTION: list[Message] = [{"role": "user", "content": "x" * 400}]
QUOTA = {"of": "tokens", "per": "user", "limit": 100, "seconds": 60}
AGENT = Agent("a", "default", "", RunLimits(), terms(quotas=[QUOTA]))


class Saying:
    """A model that streams two texts and then its usage; `requests` counts its answers."""

    name = "saying"

    def __init__(self, usage: Usage | None) -> None:
        self._usage = usage
        self.requests = 0

    async def tool_limit(self) -> int:
        return 128

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        self.requests += 1
        yield TextDelta("one ")
        yield TextDelta("two")
        yield Turn(text="one two", usage=self._usage)


async def used(counters: CountersInMemory) -> int:
    return sum(amount for (_, amount) in next(iter(counters.used.values()), []))


async def answer(model: Saying, limits: Quotas, stop_after: int = 9) -> int:
    pieces = 0
    async with (
        meter_model(model, limits, AGENT, "u", "run") as counted,
        aclosing(counted.stream(QUESTION, [], Options())) as items,
    ):
        async for _ in items:
            pieces += 1
            if pieces == stop_after:
                break
    return pieces


async def test_what_a_server_says_that_it_used_is_counted_and_the_next_turn_is_refused() -> None:
    counters, model = CountersInMemory(), Saying(Usage(90, 20))
    limits = Quotas(counters)

    assert await answer(model, limits) == 3
    assert await used(counters) == 110
    with pytest.raises(LimitReached, match="quota of 100 tokens"):
        await answer(model, limits)
    assert model.requests == 1


async def test_where_a_server_does_not_say_what_it_used_the_text_is_counted() -> None:
    counters = CountersInMemory()

    await answer(Saying(None), Quotas(counters))

    assert 100 < await used(counters) < 130


async def test_an_answer_that_breaks_off_is_counted() -> None:
    counters = CountersInMemory()

    assert await answer(Saying(Usage(90, 20)), Quotas(counters), stop_after=1) == 1

    assert 100 < await used(counters) < 130


async def test_tokens_that_cannot_be_counted_do_not_cost_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    class Breaking(CountersInMemory):
        async def settle_reservation(self, key: str, token: str, amount: int, *, window: float) -> None:
            self.broken = True
            await super().settle_reservation(key, token, amount, window=window)

    assert await answer(Saying(Usage(90, 20)), Quotas(Breaking())) == 3
    assert "110 tokens were not counted" in caplog.text


async def test_what_was_reserved_for_a_run_that_asks_nothing_is_given_back() -> None:
    counters = CountersInMemory()
    limits = Quotas(counters)
    await limits.admit_run(AGENT, "u", "run")
    assert list(map(len, counters.reserved.values())) == [1]

    async with meter_model(Saying(None), limits, AGENT, "u", "run"):
        pass

    assert list(map(len, counters.reserved.values())) == [0]


@pytest.mark.parametrize(("most", "reserved"), [(None, 500), (50, 160), (5000, 500)])
async def test_an_answer_reserves_what_is_usual_and_never_more_than_it_may_have(
    most: int | None, reserved: int
) -> None:
    counters = CountersInMemory()
    limits = Quotas(counters)
    options = Options(max_tokens=most)
    async with (
        meter_model(Saying(None), limits, AGENT, "u", "run") as model,
        aclosing(model.stream(QUESTION, [], options)) as items,
    ):
        await anext(items)
        ((_, amount),) = next(iter(counters.reserved.values())).values()

    assert amount == pytest.approx(reserved, abs=10)


async def test_without_a_quota_of_tokens_a_model_stays_as_it_is() -> None:
    model = Saying(None)
    free = Agent("a", "default", "", RunLimits(), terms(quotas=[{**QUOTA, "of": "requests"}]))

    async with meter_model(model, Quotas(CountersInMemory()), free, "u", "run") as counted:
        assert counted is model
    async with meter_model(model, Quotas(CountersInMemory()), AGENT, "u", "run") as counted:
        assert counted.name == "saying"
