"""Tool calls of a real agent within limits: the results for the model and for direct callers."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from beckon_agent.api.http.errors import problem_response
from beckon_agent.auth.authentication import make_authenticator
from beckon_agent.auth.options import AccessOptions
from beckon_agent.auth.quotas import LimitedCaller, LimitReached, Quotas
from beckon_agent.core.context import ANONYMOUS, acting_as
from beckon_agent.core.model_types import ToolCall
from beckon_agent.core.run_types import Agent
from beckon_agent.core.run_types import Limits as RunLimits
from beckon_agent.tool_calls.caller import Dispatcher
from beckon_agent.tool_calls.validation import PreparedCall
from beckon_contract.resources.tools import Tool
from beckon_runtime.problem import Problem
from tests.agent.auth.closed_service import ClosedService, closed_service, terms
from tests.agent.auth.counters import CountersInMemory
from tests.agent.event_platform import EventPlatform
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGENTS = {
    "free": terms(),
    "slow": terms(
        toolPolicies=[{"concurrency": 2, "tools": {"names": ["test_nap"]}}],
        quotas=[{"of": "toolCalls", "per": "user", "limit": 6, "seconds": 3600}],
    ),
    "rare": terms(toolPolicies=[{"rate": {"calls": 1, "seconds": 3600}}]),
}


@pytest_asyncio.fixture(loop_scope="module")
async def counters() -> CountersInMemory:
    return CountersInMemory()


@pytest_asyncio.fixture(loop_scope="module")
async def service(platform: EventPlatform, counters: CountersInMemory) -> AsyncIterator[ClosedService]:
    """Three agents on loopback, open to this machine."""
    BENCH.reset()
    async with (
        aiohttp.ClientSession() as session,
        closed_service(
            platform, AGENTS, make_authenticator(AccessOptions(host="127.0.0.1"), session), counters=counters
        ) as running,
    ):
        yield running


async def test_calls_side_by_side_keep_to_the_places_of_their_tool(service: ClosedService) -> None:
    service.model.add(asks_for(*[("test_nap", {"milliseconds": 30})] * 5), says("done"))

    answer = await service.chat("slow", None, beckon={"events": True})

    finished = [one for one in answer.json()["beckon"]["events"] if one["type"] == "call.finished"]
    assert [one["failed"] for one in finished] == [False] * 5
    assert BENCH.most == 2


async def test_the_model_learns_of_a_limit_and_the_tool_is_not_called(service: ClosedService) -> None:
    service.model.add(
        asks_for(("test_echo", {"text": "a"})), asks_for(("test_echo", {"text": "b"})), says(".")
    )

    answer = await service.chat("rare", None, beckon={"events": True})

    first, second = [
        one["result"] for one in answer.json()["beckon"]["events"] if one["type"] == "call.finished"
    ]
    assert first == "a"
    assert second["error"]["reason"] == "denied"
    assert "test_echo is called as often as it may be: 1 times in 3600 s" in second["error"]["message"]
    assert second["error"]["retry_after"] > 3500
    assert BENCH.calls == ["a"]


async def test_a_caller_by_hand_gets_429_with_the_time_to_wait(service: ClosedService) -> None:
    first = await service.call("rare", "test_echo", None, text="a")
    second = await service.call("rare", "test_echo", None, text="b")

    assert (first.status_code, second.status_code) == (200, 429)
    assert 3500 < int(second.headers["retry-after"]) <= 3600
    assert second.json()["reason"] == "denied"
    assert BENCH.calls == ["a"]


async def test_without_the_store_a_limited_tool_is_not_called_and_a_free_one_is(
    service: ClosedService, counters: CountersInMemory
) -> None:
    counters.broken = True

    limited = await service.call("rare", "test_echo", None, text="a")
    free = await service.call("free", "test_echo", None, text="b")

    assert (limited.status_code, free.status_code) == (502, 200)
    assert "its limits cannot be looked up now" in limited.json()["detail"]
    assert BENCH.calls == ["b"]


@pytest.mark.parametrize(
    ("members", "header"),
    [
        ({"retry_after": 7}, "7"),
        ({"retry_after": "1\r\nset-cookie: a=b"}, "1"),
        ({"retry_after": {"seconds": 1}}, "1"),
        ({}, "1"),
    ],
)
async def test_what_a_tool_says_of_waiting_becomes_no_header_unless_it_is_a_number(
    members: dict[str, object], header: str
) -> None:
    answer = problem_response(Problem(429, "denied", "Denied", "…", members))

    assert answer.headers["retry-after"] == header
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({"quotas": [{"of": "toolCalls", "per": "agent", "limit": 1, "seconds": 3600}]}, "tool_calls"),
        ({"toolPolicies": [{"tools": {"names": ["pay"]}, "rate": {"calls": 1, "seconds": 3600}}]}, "rate"),
        ({"toolPolicies": [{"tools": {"names": ["pay"]}, "concurrency": 1}]}, "concurrency"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
async def test_a_limit_that_is_reached_is_reported_with_its_agent(given: dict[str, Any], limit: str) -> None:
    pay = Tool("pay", "default", "pay", "pay", None, "", {"type": "object"}, "p")
    agent = Agent("a", "default", "", RunLimits(), terms(**given))
    reached: list[tuple[str, str]] = []
    limits = Quotas(CountersInMemory(), lambda *shown: reached.append(shown))

    async with limits.reserve_call(agent, "u", pay, "first", patience=1):
        assert reached == []
        with pytest.raises(LimitReached):
            async with limits.reserve_call(agent, "u", pay, "second", patience=0.01):
                pass

    assert reached == [("a", limit)]


@pytest.mark.parametrize(("again", "shown"), [(False, "denied"), (True, "outcome_unknown")])
async def test_a_call_that_may_have_been_sent_before_is_not_reported_as_one_that_never_was(
    again: bool, shown: str
) -> None:
    pay = Tool("pay", "default", "pay", "pay", None, "", {"type": "object"}, "p")
    quota = {"of": "toolCalls", "per": "user", "limit": 1, "seconds": 3600}
    agent = Agent("a", "default", "", RunLimits(), terms(quotas=[quota]))
    limits = Quotas(CountersInMemory())
    async with aiohttp.ClientSession() as session:
        with acting_as(ANONYMOUS):
            async with limits.reserve_call(agent, ANONYMOUS.id, pay, "earlier", patience=1):
                pass
            finished = await LimitedCaller(Dispatcher(session, "http://127.0.0.1:9"), limits).make_call(
                PreparedCall(ToolCall("id", "pay", "{}"), {}, pay, again=again),
                event_id="run.0.0",
                agent=agent,
                remaining=5,
            )

    assert isinstance(finished.result, dict)
    assert finished.result["error"]["reason"] == shown
    assert ("may have run" in finished.result["error"]["message"]) == again
