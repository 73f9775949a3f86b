"""Calls at `/mcp` that need a person, for a client that shows no forms."""

import asyncio

import pytest
from mcp import Client

from beckon_agent.api.mcp.server import McpSettings
from tests.agent.long import shop
from tests.agent.long.rig import ON_POSTGRESQL, Rig
from tests.agent.mcp.mcp_server import LEGACY, MODERN
from tests.agent.mcp.task_client import MISSING_FORMS, WITH_FORMS, TaskClient
from tests.agent.scripted_model import asks_for, says
from tests.patience import PATIENCE, eventually

pytestmark = ON_POSTGRESQL

WITH_AGENT = McpSettings(agent_tool=True)
MESSAGE = {"message": "How many pages?"}
HAT = {"name": "hat"}


@pytest.fixture(autouse=True)
def nothing_ordered() -> None:
    """Forget the orders of other tests."""
    shop.ordered.clear()


async def test_a_call_that_such_a_client_repeats_ends_with_the_missing_capability(rig: Rig) -> None:
    async with rig.agent() as agent:
        first = await TaskClient(agent.http, WITH_FORMS).call("order", HAT)
        repeated = {"name": "order", "arguments": HAT, "requestState": first["requestState"]}
        error = await TaskClient(agent.http, {}).error("tools/call", **repeated)
        waiting = (await agent.http.get("/inputs")).json()["data"]

    assert first["resultType"] == "input_required"
    assert (error["code"], error["data"]) == MISSING_FORMS
    assert waiting == []
    assert shop.ordered == []


async def test_the_model_of_an_agents_run_reads_that_the_call_is_denied(rig: Rig) -> None:
    script = asks_for(("order", HAT)), says("Nothing is ordered.")
    async with rig.agent(*script, mcp=WITH_AGENT) as agent:
        result = await TaskClient(agent.http, {}).call("run_agent", MESSAGE)
        read = agent.requests[1].body["messages"][-1]

    assert result["content"] == [{"type": "text", "text": "Nothing is ordered."}]
    assert '"reason":"denied"' in read["content"].replace(" ", "")
    assert "order needs input" in read["content"]
    assert shop.ordered == []


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_progress_names_the_place_where_the_approval_of_an_agents_run_is_decided(
    rig: Rig, mode: str
) -> None:
    seen: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        seen.append(message)

    async with (
        rig.agent(asks_for(("danger", {})), says("Done."), mcp=WITH_AGENT) as agent,
        Client(f"{agent.http.base_url}/mcp", mode="legacy" if mode == LEGACY else mode) as client,
        asyncio.timeout(PATIENCE),
    ):
        coming = asyncio.create_task(client.call_tool("run_agent", MESSAGE, progress_callback=note))
        await eventually(lambda: _is_in("danger waits for an approval; decide it at /approvals", seen))
        (approval,) = (await agent.http.get("/approvals")).json()["data"]
        decided = await agent.http.post(f"/approvals/{approval['id']}", json={"approve": True})
        assert decided.status_code == 200, decided.text
        result = await coming

    assert result.is_error is not True
    assert len(rig.tool.calls) == 1


async def _is_in(wanted: str, seen: list[str | None]) -> bool:
    return wanted in seen
