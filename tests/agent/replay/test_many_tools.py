"""Runs over more tools than a request has: what was chosen then is chosen again."""

import pytest

from tests.agent.many.plenty import SETUP, filler, surround
from tests.agent.replay.conftest import StartService
from tests.agent.scripted_model import asks_for, says

pytestmark = pytest.mark.asyncio(loop_scope="module")

SEARCH = asks_for(("find_tools", {"query": "say something again"}))
ECHO = asks_for(("test_echo", {"text": "hi"}))


async def test_a_run_that_searched_for_its_tools_is_the_same(start_service: StartService) -> None:
    async with start_service(SEARCH, ECHO, says("Done."), setup=SETUP) as service:
        surround(service.agent, 600)
        run = await service.run("Rename the contracts, and archive it")
        report = await service.same(run)

    assert (report["turns"], report["calls"]) == (3, 2)


async def test_tools_that_came_since_are_reported_where_they_change_the_choice(
    start_service: StartService,
) -> None:
    async with start_service(SEARCH, ECHO, says("Done."), setup=SETUP) as service:
        surround(service.agent, 600)
        run = await service.run("Rename the contracts, and archive it")
        tool = filler(7)
        service.change_tool("archive_all", tool, description="Rename the contracts, and archive it.")
        _, report = await service.replay(run)

    assert "tools" in report["differences"][0]["where"]
