"""How many calls one turn makes, and how often the same call is made in one run."""

import itertools
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from beckon_agent.core.run_types import Limits
from beckon_tools import tool
from tests.agent.conftest import StartAgent
from tests.agent.event_platform import EventPlatform, event_platform
from tests.agent.running_agent import Setup
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH, TOOLS

pytestmark = pytest.mark.asyncio(loop_scope="module")

ECHO = ("test_echo", {"text": "x"})

looks = itertools.count()


@tool(type="test.look")
async def look() -> int:
    """Look at what changes."""
    return next(looks)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EventPlatform]:
    """The tools of the tests, and one whose results differ."""
    async with event_platform(tmp_path_factory.mktemp("manifests"), [*TOOLS, look], {}) as running:
        yield running


async def test_a_turn_makes_no_more_calls_than_its_limit_and_the_model_reads_why(
    start_agent: StartAgent,
) -> None:
    request = [("test_echo", {"text": str(number)}) for number in range(500)]
    async with start_agent(asks_for(*request), says("ok")) as agent:
        answer = await agent.ask()

        assert sorted(map(int, BENCH.calls)) == list(range(64))
        refused = [event["result"]["error"] for event in answer.finished if event["failed"]]
        assert len(refused) == 436
        assert {error["reason"] for error in refused} == {"denied"}
        assert "at most 64 calls" in refused[0]["message"]
        results = [message for message in agent.requests[1].body["messages"] if message["role"] == "tool"]
        assert len(results) == 500
        assert (answer.text, answer.finish_reason) == ("ok", "stop")


async def test_the_limit_of_a_turn_is_for_each_turn_anew(start_agent: StartAgent) -> None:
    turns = [asks_for(*(("test_echo", {"text": f"{turn}{n}"}) for n in "abc")) for turn in "12"]
    async with start_agent(*turns, says("ok"), setup=Setup(limits=Limits(calls_per_turn=2))) as agent:
        answer = await agent.ask()

    assert sorted(BENCH.calls) == ["1a", "1b", "2a", "2b"]
    assert [event["failed"] for event in answer.finished].count(True) == 2


async def test_a_call_that_brings_the_same_again_and_again_is_denied_and_the_model_ends_the_run(
    start_agent: StartAgent,
) -> None:
    async with start_agent(*[asks_for(ECHO)] * 8, says("I give up.")) as agent:
        answer = await agent.ask()

    assert BENCH.calls == ["x"] * 5
    assert [event["failed"] for event in answer.finished] == [False] * 5 + [True] * 3
    error = answer.finished[5]["result"]["error"]
    assert error["reason"] == "denied"
    assert "was called 5 times with these same arguments" in error["message"]
    assert (answer.text, answer.finish_reason) == ("I give up.", "stop")


async def test_the_order_and_the_spelling_of_arguments_make_no_other_call(start_agent: StartAgent) -> None:
    spelt: list[dict[str, object]] = [
        {"text": "x", "count": 1},
        {"count": 1, "text": "x"},
        {"text": "x", "count": "1"},
    ]
    script = [asks_for(("test_echo", arguments)) for arguments in spelt]
    async with start_agent(*script, says("ok"), setup=Setup(limits=Limits(repeated_calls=2))) as agent:
        answer = await agent.ask()

    assert [event["failed"] for event in answer.finished] == [False, False, True]


async def test_a_call_that_fails_again_and_again_is_denied(start_agent: StartAgent) -> None:
    refuses = asks_for(("test_fail", {"kind": "refuse"}))
    limits = Limits(call_timeout=10, repeated_calls=2)
    async with start_agent(*[refuses] * 3, says("ok"), setup=Setup(limits=limits)) as agent:
        answer = await agent.ask()

    reasons = [event["result"]["error"]["reason"] for event in answer.finished]
    assert reasons == ["tool_failed", "tool_failed", "denied"]


async def test_a_call_whose_results_differ_is_made_again(start_agent: StartAgent) -> None:
    """So a model may look at what changes: a queue, a clock, a job."""
    limits = Limits(call_timeout=10, repeated_calls=2)
    async with start_agent(
        *[asks_for(("test_look", {}))] * 4, says("ok"), setup=Setup(limits=limits)
    ) as agent:
        answer = await agent.ask()

    assert [event["failed"] for event in answer.finished] == [False] * 4


async def test_another_call_in_between_starts_no_new_count(start_agent: StartAgent) -> None:
    other = ("test_echo", {"text": "y"})
    script = [asks_for(ECHO, other), asks_for(other), asks_for(ECHO), asks_for(ECHO)]
    async with start_agent(*script, says("ok"), setup=Setup(limits=Limits(repeated_calls=2))) as agent:
        answer = await agent.ask()

    assert [event["failed"] for event in answer.finished] == [False, False, False, False, True]
