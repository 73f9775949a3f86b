"""Quotas and bounds: how much each may use, counted where all replicas look."""

import asyncio

import pytest

from beckon_agent.auth.quotas import LimitReached, Quotas
from beckon_agent.core.run_types import Agent
from beckon_agent.core.run_types import Limits as RunLimits
from beckon_agent.store.base import StoreUnavailable
from beckon_contract.resources.agent_terms import Terms
from beckon_contract.resources.tools import Tool
from tests.agent.auth.closed_service import terms
from tests.agent.auth.counters import CountersInMemory

PAY = Tool("pay", "default", "pay", "pay", None, "", {"type": "object"}, "p")


def agent(limits_of_agent: Terms, name: str = "a") -> Agent:
    return Agent(name, "default", "", RunLimits(), limits_of_agent)


def quota(of: str, per: str, limit: int, seconds: int = 60) -> dict[str, object]:
    return {"of": of, "per": per, "limit": limit, "seconds": seconds}


@pytest.fixture
def counters() -> CountersInMemory:
    return CountersInMemory()


@pytest.fixture
def limits(counters: CountersInMemory) -> Quotas:
    return Quotas(counters)


async def call(limits: Quotas, who: Agent, user: str = "u", number: int = 0, patience: float = 0.0) -> None:
    async with limits.reserve_call(who, user, PAY, f"call-{number}", patience=patience):
        pass


async def test_without_terms_nothing_is_counted(limits: Quotas, counters: CountersInMemory) -> None:
    free = agent(terms())

    await limits.admit_run(free, "u", "run")
    await limits.settle_tokens(free, "u", "1", 1000)
    await call(limits, free)

    assert (counters.used, counters.places) == ({}, {})


async def test_a_user_has_as_many_requests_as_the_quota_says_and_then_waits(
    limits: Quotas, counters: CountersInMemory
) -> None:
    held = agent(terms(quotas=[quota("requests", "user", 3)]))
    for _ in range(3):
        await limits.admit_run(held, "u", "run")

    with pytest.raises(LimitReached, match="quota of 3 requests in 60 s for this user is used up") as caught:
        await limits.admit_run(held, "u", "run")
    assert 55 <= caught.value.retry_after <= 60

    await limits.admit_run(held, "another", "run")
    counters.passed = 61
    await limits.admit_run(held, "u", "run")


async def test_all_users_of_an_agent_share_its_quota_and_other_agents_have_their_own(limits: Quotas) -> None:
    limits_of_agent = terms(quotas=[quota("requests", "agent", 2)])
    await limits.admit_run(agent(limits_of_agent), "u", "run")
    await limits.admit_run(agent(limits_of_agent), "v", "run")

    with pytest.raises(LimitReached, match="for all users of this agent"):
        await limits.admit_run(agent(limits_of_agent), "w", "run")
    await limits.admit_run(agent(limits_of_agent, "b"), "w", "run")


async def test_the_smaller_of_two_quotas_for_one_window_counts(limits: Quotas) -> None:
    held = agent(terms(quotas=[quota("requests", "user", 5), quota("requests", "user", 1)]))
    await limits.admit_run(held, "u", "run")

    with pytest.raises(LimitReached, match="quota of 1 requests"):
        await limits.admit_run(held, "u", "run")


async def test_quotas_of_different_windows_hold_both(limits: Quotas, counters: CountersInMemory) -> None:
    held = agent(terms(quotas=[quota("requests", "user", 1, 10), quota("requests", "user", 2, 3600)]))
    await limits.admit_run(held, "u", "run")
    with pytest.raises(LimitReached, match="in 10 s"):
        await limits.admit_run(held, "u", "run")

    counters.passed = 11
    await limits.admit_run(held, "u", "run")
    counters.passed = 22
    with pytest.raises(LimitReached, match="in 3600 s"):
        await limits.admit_run(held, "u", "run")


async def test_used_up_tokens_stop_the_next_turn_and_the_next_run(
    limits: Quotas, counters: CountersInMemory
) -> None:
    held = agent(terms(quotas=[quota("tokens", "user", 100)]))
    await limits.admit_run(held, "u", "1")
    await limits.settle_tokens(held, "u", "1", 99)
    await limits.reserve_tokens(held, "u", "1", 10)
    await limits.settle_tokens(held, "u", "1", 500)

    for refused in (
        limits.reserve_tokens(held, "u", "1", 10),
        limits.admit_run(held, "u", "2"),
        limits.admit_call(held, "u"),
    ):
        with pytest.raises(LimitReached, match="quota of 100 tokens"):
            await refused
    await limits.reserve_tokens(held, "another", "3", 10)

    counters.passed = 61
    await limits.admit_run(held, "u", "4")


async def test_tool_calls_of_a_user_are_counted(limits: Quotas) -> None:
    held = agent(terms(quotas=[quota("toolCalls", "user", 2)]))
    await call(limits, held)
    await call(limits, held)

    with pytest.raises(LimitReached, match="quota of 2 tool calls"):
        await call(limits, held)
    await call(limits, held, "another")


async def test_a_rate_over_all_users_refuses_what_would_wait_too_long(limits: Quotas) -> None:
    held = agent(terms(toolPolicies=[{"rate": {"calls": 2, "seconds": 60}}]))
    await call(limits, held, "u")
    await call(limits, held, "v")

    with pytest.raises(LimitReached, match="pay is called as often as it may be: 2 times in 60 s") as caught:
        await call(limits, held, "w", patience=5)
    assert caught.value.retry_after > 50


async def test_a_call_waits_for_its_turn_where_that_is_in_time(
    limits: Quotas, counters: CountersInMemory
) -> None:
    held = agent(terms(toolPolicies=[{"rate": {"calls": 1, "seconds": 60}}]))
    await call(limits, held)
    counters.passed = 59.9  # a tenth of a second is left

    await call(limits, held, patience=5)

    assert len(counters.used["rate|/beckon/agents/default/a|pay|60"]) == 1  # the first has left the window


async def test_no_more_calls_run_at_the_same_time_than_there_are_places(limits: Quotas) -> None:
    held = agent(terms(toolPolicies=[{"concurrency": 3}]))
    running = most = 0

    async def one(number: int) -> None:
        nonlocal running, most
        async with limits.reserve_call(held, "u", PAY, f"call-{number}", patience=20):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1

    await asyncio.gather(*(one(number) for number in range(9)))

    assert most == 3


async def test_a_call_that_finds_no_place_in_time_is_refused(limits: Quotas) -> None:
    held = agent(terms(toolPolicies=[{"concurrency": 1}]))
    async with limits.reserve_call(held, "u", PAY, "first", patience=5):
        with pytest.raises(LimitReached, match="as many calls of it are in progress as may be: 1"):
            await call(limits, held, number=2)
    await call(limits, held, number=3)


async def test_a_call_that_is_made_again_after_a_crash_keeps_its_place(
    limits: Quotas, counters: CountersInMemory
) -> None:
    held = agent(terms(toolPolicies=[{"concurrency": 1}]))
    await counters.take_place("places|/beckon/agents/default/a|pay", "call-0", limit=1, seconds=60)

    await call(limits, held, number=0)


async def test_a_place_is_given_back_where_the_call_fails_or_is_cancelled(
    limits: Quotas, counters: CountersInMemory
) -> None:
    held = agent(terms(toolPolicies=[{"concurrency": 1}]))
    with pytest.raises(RuntimeError, match="on purpose"):
        async with limits.reserve_call(held, "u", PAY, "fails", patience=0):
            raise RuntimeError("on purpose")
    inside = asyncio.Event()

    async def waits_for_place() -> None:
        async with limits.reserve_call(held, "u", PAY, "stands", patience=0):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(waits_for_place())
    await inside.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert counters.places == {"places|/beckon/agents/default/a|pay": {}}


async def test_where_no_one_can_show_nothing_begins(limits: Quotas, counters: CountersInMemory) -> None:
    held = agent(terms(quotas=[quota("requests", "user", 3)], toolPolicies=[{"concurrency": 1}]))
    counters.broken = True

    with pytest.raises(StoreUnavailable):
        await limits.admit_run(held, "u", "run")
    with pytest.raises(StoreUnavailable):
        await call(limits, held)


async def test_a_place_that_cannot_be_given_back_does_not_cost_the_result(
    limits: Quotas, counters: CountersInMemory, caplog: pytest.LogCaptureFixture
) -> None:
    held = agent(terms(toolPolicies=[{"concurrency": 1}]))

    async with limits.reserve_call(held, "u", PAY, "c", patience=0):
        counters.broken = True

    assert "is given back late" in caplog.text
