"""Brokers deliver at least once; a tool runs once."""

import asyncio
from collections import Counter

import pytest

from beckon_tools import Retry, ToolError, tool
from beckon_tools.declaration import AnyTool
from beckon_tools.duplicates import Busy, OnceOnly
from beckon_tools.outcomes.ledger import CallKey
from tests.patience import PATIENCE
from tests.tools.serving import call, calling


class Gate:
    """A tool that counts its runs and waits until it may finish."""

    def __init__(self, outcomes: list[Exception | str] | None = None) -> None:
        self.runs = 0
        self.started = asyncio.Event()
        self.may_finish = asyncio.Event()
        self.outcomes = outcomes or []

    def tool(self) -> AnyTool:
        @tool(type="gated")
        async def gated(text: str = "") -> str:
            """Wait at the gate."""
            self.runs += 1
            self.started.set()
            await self.may_finish.wait()
            outcome = self.outcomes.pop(0) if self.outcomes else f"run {self.runs}{text}"
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return gated


async def test_a_later_duplicate_gets_the_same_result_with_its_own_correlation() -> None:
    gate = Gate()
    gate.may_finish.set()
    async with calling(gate.tool()) as caller:
        first = await caller.reply(call("gated", {}, correlationid="one"))
        second = await caller.reply(call("gated", {}, correlationid="two"))
    assert gate.runs == 1
    assert (first.json(), second.json()) == ("run 1", "run 1")
    assert (first.extensions["replyid"], second.extensions["replyid"]) == ("one", "two")
    assert first.id != second.id


async def test_concurrent_duplicates_await_the_first() -> None:
    gate = Gate()
    async with calling(gate.tool()) as caller:
        posts = [asyncio.create_task(caller.reply(call("gated", {}))) for _ in range(10)]
        await asyncio.wait_for(gate.started.wait(), PATIENCE)
        gate.may_finish.set()
        replies = await asyncio.gather(*posts)
    assert gate.runs == 1
    assert Counter(str(reply.json()) for reply in replies) == {"run 1": 10}


async def test_calls_with_another_id_or_source_run_by_themselves() -> None:
    gate = Gate()
    gate.may_finish.set()
    async with calling(gate.tool()) as caller:
        for number in range(3):
            await caller.reply(call("gated", {}, id=f"call-{number}"))
    assert gate.runs == 3


async def test_a_tool_error_is_remembered() -> None:
    gate = Gate([ToolError("no")])
    gate.may_finish.set()
    async with calling(gate.tool()) as caller:
        results = [await caller.result(call("gated", {})) for _ in range(2)]
    assert gate.runs == 1
    assert results[0] == results[1] == {"error": {"reason": "tool_failed", "message": "no"}}


async def test_an_exception_is_remembered_so_that_a_second_delivery_does_not_run() -> None:
    gate = Gate([RuntimeError("no paper"), "second time lucky"])
    gate.may_finish.set()
    async with calling(gate.tool()) as caller:
        results = [await caller.result(call("gated", {})) for _ in range(2)]
    assert gate.runs == 1
    assert results == [{"error": {"reason": "tool_failed", "message": "RuntimeError: no paper"}}] * 2


async def test_a_run_that_wants_another_delivery_is_not_remembered() -> None:
    gate = Gate([Retry("not now"), "second time lucky"])
    gate.may_finish.set()
    async with calling(gate.tool()) as caller:
        assert (await caller.post(call("gated", {}))).status_code == 503
        assert await caller.result(call("gated", {})) == "second time lucky"


async def test_a_caller_that_hangs_up_does_not_stop_the_run() -> None:
    gate = Gate()
    async with calling(gate.tool()) as caller:
        post = asyncio.create_task(caller.post(call("gated", {})))
        await asyncio.wait_for(gate.started.wait(), PATIENCE)
        post.cancel()
        await asyncio.gather(post, return_exceptions=True)
        gate.may_finish.set()
        assert await caller.result(call("gated", {})) == "run 1"
    assert gate.runs == 1


async def test_more_calls_than_may_run_have_to_come_again() -> None:
    gate = Gate()
    async with calling(gate.tool(), concurrency=1) as caller:
        first = asyncio.create_task(caller.result(call("gated", {})))
        await asyncio.wait_for(gate.started.wait(), PATIENCE)
        refused = await caller.post(call("gated", {}, id="other"))
        duplicate = asyncio.create_task(caller.result(call("gated", {})))
        gate.may_finish.set()
        assert (await first, await duplicate) == ("run 1", "run 1")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")


async def run_of(data: bytes) -> bytes:
    return data


async def test_outcomes_are_stored_within_their_number_and_their_bytes() -> None:
    for capacity, budget in ((2, 10_000), (100, 20)):
        once = OnceOnly(capacity, budget, ttl=60, running=10)
        for number in range(4):
            await once.find_outcome(CallKey("t", "s", str(number)), lambda: run_of(b"0123456789"))
        again = [
            await once.find_outcome(CallKey("t", "s", str(number)), lambda: run_of(b"new"))
            for number in (3, 2)
        ]
        assert again == [b"0123456789", b"0123456789"]
        assert await once.find_outcome(CallKey("t", "s", "0"), lambda: run_of(b"new")) == b"new"


async def test_an_outcome_is_forgotten_after_its_time() -> None:
    once = OnceOnly(capacity=10, budget=1000, ttl=1e-9, running=10)
    assert await once.find_outcome(CallKey("t", "s", "1"), lambda: run_of(b"old")) == b"old"
    await asyncio.sleep(0)
    assert await once.find_outcome(CallKey("t", "s", "1"), lambda: run_of(b"new")) == b"new"


async def test_a_run_that_was_refused_leaves_nothing_behind() -> None:
    once = OnceOnly(capacity=10, budget=1000, ttl=60, running=0)
    with pytest.raises(Busy):
        await once.find_outcome(CallKey("t", "s", "1"), lambda: run_of(b"never"))
