"""What a tool reports of a call that it answers later: the last report is stored until the answer comes."""

import json
from typing import Any

import pytest

from beckon_agent.api.responses.item_types import PROGRESS
from tests.agent.long.rig import ON_POSTGRESQL, LongAgent, Rig, report
from tests.agent.scripted_model import asks_for, says
from tests.patience import eventually

pytestmark = ON_POSTGRESQL

REPORT = asks_for(("report", {}))


async def stored_report(agent: LongAgent, run_id: str) -> dict[str, Any] | None:
    """Return the report of the only call of a run."""
    (step, *_) = (await agent.http.get(f"/runs/{run_id}")).json()["steps"]
    (call,) = step["calls"]
    found: dict[str, Any] | None = call["report"]
    return found


async def until_stored(agent: LongAgent, run_id: str, done: float) -> None:
    async def is_stored() -> bool:
        found = await stored_report(agent, run_id)
        return found is not None and found["progress"] == done

    await eventually(is_stored)


async def test_the_last_report_is_stored_with_the_call_until_its_answer(rig: Rig) -> None:
    async with rig.agent(REPORT, says("It says 42.")) as agent:
        begun = await agent.post()
        call = await rig.tool.called()
        await agent.waits(begun["id"])  # a report before that goes to the open connection, and is not kept
        for done in (1, 2):
            await rig.tool.report(call, done)
            await until_stored(agent, begun["id"], done)
        assert await stored_report(agent, begun["id"]) == {"progress": 2, "total": 3, "message": "page 2"}
        assert await rig.shim.metric('beckon_shim_reports_total{outcome="late"}') == 2

        await rig.tool.answer(call, {"pages": 42})
        await agent.until(begun["id"], "completed")

        assert await stored_report(agent, begun["id"]) is None


async def test_a_stream_that_waits_gets_it(rig: Rig) -> None:
    shown: list[dict[str, Any]] = []
    async with rig.agent(REPORT, says("It says 42.")) as agent:
        begun = await agent.post(background=True)
        call = await rig.tool.called()
        await agent.waits(begun["id"])
        query = {"stream": "true", "include[]": PROGRESS}
        await rig.tool.report(call, 1)
        async with agent.http.stream("GET", f"/v1/responses/{begun['id']}", params=query) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {") and (event := json.loads(line[6:]))["type"] == PROGRESS:
                    shown.append(event)
                    await (rig.tool.report(call, 2) if len(shown) == 1 else rig.tool.answer(call, 42))

    assert [(event["progress"], event["message"]) for event in shown] == [(1, "page 1"), (2, "page 2")]


async def test_who_looks_on_a_run_gets_it(rig: Rig) -> None:
    shown: list[dict[str, Any]] = []
    async with rig.agent(REPORT, says("It says 42.")) as agent:
        begun = await agent.post()
        call = await rig.tool.called()
        await agent.waits(begun["id"])
        await rig.tool.report(call, 1)
        path, accept = f"/runs/{begun['id']}/events", {"accept": "text/event-stream"}
        async with agent.http.stream("GET", path, headers=accept) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    shown.append(json.loads(line[6:]))
                    if shown[-1]["type"] == "progress":
                        await rig.tool.answer(call, 42)

    (reported,) = (event for event in shown if event["type"] == "progress")
    assert (reported["name"], reported["progress"], reported["total"]) == ("report", 1, 3)
    assert shown[-1]["type"] == "ended"


@pytest.mark.parametrize(
    ("changed", "body", "status"),
    [
        ({"ce-beckonprogress": "shim-0.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA"}, b'{"progress": 1}', 403),
        ({"ce-causationid": "run_1.0.0"}, b'{"progress": 1}', 403),
        ({}, b'{"progress": "half"}', 400),
        ({}, b"half", 400),
    ],
)
async def test_what_does_not_prove_itself_or_says_nothing_is_refused(
    rig: Rig, changed: dict[str, str], body: bytes, status: int
) -> None:
    async with rig.agent(REPORT) as agent:
        begun = await agent.post()
        call = await rig.tool.called()

        refused = await agent.http.post("/late-replies", content=body, headers={**report(call), **changed})

        assert (refused.status_code, refused.headers["content-type"]) == (status, "application/problem+json")
        assert await stored_report(agent, begun["id"]) is None


async def test_a_report_behind_the_answer_changes_nothing(rig: Rig) -> None:
    async with rig.agent(REPORT, says("It says 42.")) as agent:
        begun = await agent.post()
        call = await rig.tool.called()
        await rig.tool.answer(call, 42)
        await agent.until(begun["id"], "completed")

        behind = await agent.http.post("/late-replies", content=b'{"progress": 1}', headers=report(call))

        assert behind.status_code == 410
        assert await stored_report(agent, begun["id"]) is None
