"""What Prometheus can ask a tool: its calls by how they ended, and its runs."""

import asyncio
import re
from datetime import UTC, datetime, timedelta

import pytest

from beckon_tools import Later, Ticket, ToolError, tool
from tests.patience import PATIENCE
from tests.tools.serving import Caller, call, calling


@tool(type="act")
async def act(kind: str, ticket: Ticket) -> object:
    """End in the way that is named."""
    if kind == "error":
        raise ToolError("no")
    if kind == "crash":
        raise RuntimeError("oh")
    return Later() if kind == "later" else kind


async def metrics(caller: Caller) -> dict[str, float]:
    response = await caller.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    lines = re.findall(r"^(beckon_tool_\S+) (\S+)$", response.text, re.MULTILINE)
    return {name: float(value) for name, value in lines}


async def outcomes(caller: Caller) -> dict[str, float]:
    found = await metrics(caller)
    pattern = re.compile(r'beckon_tool_calls_total\{outcome="(\w+)"\}')
    return {said[1]: value for name, value in found.items() if (said := pattern.match(name))}


@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        ({"kind": "result"}, "replied"),
        ({"kind": "error"}, "tool_failed"),
        ({"kind": "crash"}, "tool_failed"),
        ({"kind": "later"}, "accepted"),
        ({}, "invalid_arguments"),
    ],
)
async def test_a_call_is_counted_by_how_it_ended(arguments: dict[str, str], outcome: str) -> None:
    async with calling(act) as caller:
        await caller.post(call("act", arguments))
        assert await outcomes(caller) == {outcome: 1}


async def test_a_call_that_had_expired_is_counted_and_was_no_run() -> None:
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    async with calling(act) as caller:
        await caller.post(call("act", {"kind": "result"}, expirytime=past))
        assert await outcomes(caller) == {"timeout": 1}
        assert (await metrics(caller))["beckon_tool_run_seconds_count"] == 0


async def test_repetitions_are_calls_and_one_run() -> None:
    async with calling(act) as caller:
        for _ in range(3):
            await caller.reply(call("act", {"kind": "result"}))
        assert await outcomes(caller) == {"replied": 3}
        assert (await metrics(caller))["beckon_tool_run_seconds_count"] == 1


async def test_what_runs_now_is_reported_and_what_is_too_much_counted() -> None:
    started, may_end = asyncio.Event(), asyncio.Event()

    @tool(type="wait")
    async def wait() -> None:
        """Wait."""
        started.set()
        await may_end.wait()

    async with calling(wait, concurrency=1) as caller:
        first = asyncio.create_task(caller.post(call("wait")))
        await asyncio.wait_for(started.wait(), PATIENCE)
        assert (await metrics(caller))["beckon_tool_running"] == 1
        await caller.post(call("wait", id="other"))
        may_end.set()
        await first
        assert (await metrics(caller))["beckon_tool_running"] == 0
        assert await outcomes(caller) == {"busy": 1, "replied": 1}


async def test_health_and_metrics_are_not_counted_as_calls() -> None:
    async with calling(act) as caller:
        await caller.client.get("/healthz")
        await caller.client.get("/")
        assert await outcomes(caller) == {}
