"""How far a run may go: steps, seconds, tokens, calls side by side, and how much of a result is shown."""

import asyncio
import json
import time

import pytest

from beckon_agent.core.run_types import Limits
from tests.agent.conftest import StartAgent
from tests.agent.event_platform import EventPlatform
from tests.agent.running_agent import Setup
from tests.agent.scripted_model import Reply, asks_for, calls, chunk, fragment, says, sse, streamed
from tests.agent.tools_for_tests import BENCH
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

ECHO = ("test_echo", {"text": "x"})


def counted(prompt: int, completion: int, *, calling: bool) -> Reply:
    """Return an answer with its usage."""
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    if calling:
        said = calls(fragment(0, "call_1", ECHO[0], json.dumps(ECHO[1])))
    else:
        said = chunk({"content": "done"})
    return streamed(said, chunk(finish="stop"), {"choices": [], "usage": usage})


async def test_the_model_is_called_no_more_than_its_steps_and_the_answer_says_so(
    start_agent: StartAgent,
) -> None:
    async with start_agent(*[asks_for(ECHO)] * 9, setup=Setup(limits=Limits(steps=3))) as agent:
        answer = await agent.ask()

        assert len(agent.requests) == 3
        assert answer.finish_reason == "length"
        assert answer.text == "[stopped: the run has reached its limit of requests to the model]"


async def test_calls_whose_results_no_one_would_see_are_not_made(start_agent: StartAgent) -> None:
    async with start_agent(*[asks_for(ECHO)] * 2, setup=Setup(limits=Limits(steps=2))) as agent:
        answer = await agent.ask()

    assert BENCH.calls == ["x"]
    assert [event["failed"] for event in answer.finished] == [False, True]
    assert answer.finished[1]["result"]["error"]["reason"] == "denied"
    assert "not called" in answer.finished[1]["result"]["error"]["message"]


async def test_a_run_that_has_used_up_its_tokens_asks_no_more(start_agent: StartAgent) -> None:
    script = [counted(40, 10, calling=True), counted(60, 10, calling=True), says("never")]
    async with start_agent(*script, setup=Setup(limits=Limits(tokens=120))) as agent:
        answer = await agent.ask()

        assert len(agent.requests) == 2
        assert answer.usage == {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        assert answer.finish_reason == "length"
        assert "[stopped: the run used as many tokens" in answer.text


async def test_an_answer_that_uses_up_the_tokens_is_still_an_answer(start_agent: StartAgent) -> None:
    async with start_agent(counted(500, 10, calling=False), setup=Setup(limits=Limits(tokens=5))) as agent:
        answer = await agent.ask()

    assert (answer.text, answer.finish_reason) == ("done", "stop")


async def test_a_model_that_stalls_in_the_middle_of_its_answer_is_left_in_time(
    start_agent: StartAgent,
) -> None:
    never = asyncio.Event()
    stalling = Reply([sse(chunk({"content": "Well, so"}), done=False), b": more\n\n"], holds=never)
    begun = time.monotonic()
    async with start_agent(stalling, setup=Setup(limits=Limits(seconds=0.5))) as agent:
        answer = await agent.ask()
        taken = time.monotonic() - begun

        assert answer.text == "Well, so\n\n[stopped: the run took as long as it may take]"
        assert answer.finish_reason == "length"
        assert 0.5 <= taken < 5
        await asyncio.wait_for(agent.model.hung_up.wait(), PATIENCE)


async def test_a_tool_that_hangs_does_not_outlive_the_run(
    start_agent: StartAgent, platform: EventPlatform
) -> None:
    begun = time.monotonic()
    # On a busy machine the answer of the other tool takes a second, too.
    async with start_agent(asks_for(("test_wait", {}), ECHO), setup=Setup(limits=Limits(seconds=3))) as agent:
        answer = await agent.ask()
        taken = time.monotonic() - begun

        assert [event["name"] for event in answer.finished] == ["test_echo", "test_wait"]
        assert answer.finished[1]["result"]["error"]["reason"] == "timeout"
        assert answer.text.startswith("[stopped: the run took as long")
        assert len(agent.requests) == 1
        assert 3 <= taken < 6, "the margin that a dead shim is given is no part of the run"

    async def no_one_waits() -> bool:
        return await platform.metric("waiting_calls") == 0

    await eventually(no_one_waits)


async def test_no_more_calls_than_allowed_run_side_by_side(start_agent: StartAgent) -> None:
    naps = [("test_nap", {"milliseconds": 200}) for _ in range(7)]
    async with start_agent(
        asks_for(*naps), says("ok"), setup=Setup(limits=Limits(parallel_calls=3))
    ) as agent:
        answer = await agent.ask()

    assert [event["failed"] for event in answer.finished] == [False] * 7
    assert BENCH.most == 3


async def test_a_call_that_gets_no_turn_before_the_end_of_the_run_is_reported_as_such(
    start_agent: StartAgent,
) -> None:
    limits = Limits(seconds=2, parallel_calls=1)
    script = asks_for(("test_wait", {}), ("test_echo", {"text": "late"}))
    async with start_agent(script, setup=Setup(limits=limits)) as agent:
        answer = await agent.ask()

    assert [event["result"]["error"]["reason"] for event in answer.finished] == ["timeout", "timeout"]
    assert BENCH.calls == ["wait"]


async def test_a_long_result_is_cut_with_a_note(start_agent: StartAgent) -> None:
    long = asks_for(("test_echo", {"text": "0123456789", "count": 100}))
    async with start_agent(long, says("ok"), setup=Setup(limits=Limits(result_chars=200))) as agent:
        answer = await agent.ask()
        shown = agent.requests[1].body["messages"][-1]["content"]

    assert shown == "0123456789" * 20 + "\n[cut: the result has 1000 characters, the first 200 are shown]"
    assert len(answer.finished[0]["result"]) == 1000
