"""What the status of an Agent says, and how seldom it is written."""

import asyncio
import re
from pathlib import Path

import pytest

from beckon_agent.agents.kubernetes import Periods
from tests.agent.cluster.running import running_cluster
from tests.agent.cluster_objects import agent, tool
from tests.agent.model_server import ModelServer
from tests.patience import eventually
from tests.sources.api_server import ApiServer

QUICKLY = Periods(keys=0.05, models=0.1, statuses=0.2)


async def has_tools(server: ApiServer, number: int, name: str = "helper") -> None:
    async def as_wanted() -> bool:
        return server.status(name).get("tools") == number

    await eventually(as_wanted)


async def test_the_status_shows_tools_model_and_conditions(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    await server.put("tools", tool("a"))
    await server.put("tools", tool("b"))
    await server.put("tools", tool("c", ready="False"))
    async with running_cluster(server, tmp_path, model.url) as running:
        await server.put("agents", agent("helper", model={"baseURL": model.url}))
        status = await running.status("helper", Ready="Ready")

    times = [one.pop("lastTransitionTime") for one in status["conditions"]]
    common = {"status": "True", "message": "", "observedGeneration": 1}
    assert status == {
        "observedGeneration": 1,
        "tools": 2,
        "model": "the first of its server (auto)",
        "conditions": [
            {"type": "Accepted", "reason": "Accepted", **common},
            {"type": "ModelAnswers", "reason": "Answers", **common},
            {"type": "Ready", "reason": "Ready", **common},
        ],
    }
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", time) for time in times)


async def test_the_number_of_tools_follows_the_tools_with_few_writes(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    async with running_cluster(server, tmp_path, model.url) as running:
        await server.put("agents", agent("helper"))
        await running.status("helper", Ready="Ready")
        writes = len(server.statuses)
        for number in range(200):
            await server.put("tools", tool(f"t{number}"))
        await has_tools(server, 200)

    assert len(server.statuses) - writes <= 5


async def test_a_status_that_is_there_already_is_not_written_again_not_even_by_many(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    await server.put("tools", tool("a"))
    await server.put("agents", agent("helper"))
    async with running_cluster(server, tmp_path, model.url, periods=QUICKLY) as first:
        await first.status("helper", Ready="Ready")
        settled = server.statuses[-1]
        writes = len(server.statuses)
        async with (
            running_cluster(server, tmp_path, model.url, periods=QUICKLY),
            running_cluster(server, tmp_path, model.url, periods=QUICKLY),
        ):
            listed = len(model.listed)

            async def probed_often() -> bool:
                return len(model.listed) > listed + 12

            await eventually(probed_often)

    assert len(server.statuses) == writes
    assert server.status("helper") == settled[1]


async def test_replicas_that_disagree_write_once_in_a_while_and_never_in_a_loop(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    """One replica's own server, which the Agent inherits, answers; the other's is not there."""
    await server.put("agents", agent("helper"))
    periods = Periods(models=60, statuses=0.5)
    async with (
        running_cluster(server, tmp_path, model.url, periods=periods),
        running_cluster(server, tmp_path, "http://127.0.0.1:9/v1", periods=periods),
    ):

        async def written_by_both() -> bool:
            return {_reason(status) for _, status in server.statuses} >= {"Answers", "Unreachable"}

        await eventually(written_by_both)
        begun = asyncio.get_running_loop().time()
        writes = len(server.statuses)

        async def written_more() -> bool:
            return len(server.statuses) >= writes + 4

        await eventually(written_more, 15)
        took = asyncio.get_running_loop().time() - begun

    assert took > 0.8, "two replicas, each at most twice a second here and once a minute in earnest"


def _reason(status: dict[str, list[dict[str, str]]]) -> str:
    return next(one["reason"] for one in status["conditions"] if one["type"] == "ModelAnswers")


async def test_a_condition_keeps_its_time_until_its_status_changes(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    old = "2020-01-01T00:00:00Z"
    kinds = ("Accepted", "ModelAnswers", "Ready")
    before = [{"type": kind, "status": "True", "reason": "X", "lastTransitionTime": old} for kind in kinds]
    await server.put(
        "agents", {**agent("helper", model={"name": "missing"}), "status": {"conditions": before}}
    )
    async with running_cluster(server, tmp_path, model.url) as running:
        status = await running.status("helper", ModelAnswers="NoSuchModel")

    times = {one["type"]: one["lastTransitionTime"] for one in status["conditions"]}
    assert times["Accepted"] == old
    assert times["ModelAnswers"] != old
    assert times["Ready"] != old


async def test_a_refused_write_is_reported_once_and_tried_again(
    server: ApiServer, model: ModelServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server.refuse = lambda request: (403, "cannot patch agents/status") if request.method == "PATCH" else None
    async with running_cluster(server, tmp_path, model.url, periods=QUICKLY) as running:
        await server.put("agents", agent("helper"))
        await running.serves("helper")

        async def tried_often() -> bool:
            return sum(method == "PATCH" for method, _ in server.requests) >= 3

        await eventually(tried_often)
        server.refuse = lambda _: None
        await running.status("helper", Ready="Ready")

    assert caplog.text.count("refuses the status of Agent default/helper: cannot patch agents/status") == 1


async def test_a_status_of_a_later_change_is_left_alone(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    """Another replica has seen a change of the Agent that has not come here yet."""
    later = {"observedGeneration": 7, "conditions": []}
    await server.put("agents", {**agent("helper"), "status": later})
    async with running_cluster(server, tmp_path, model.url, periods=QUICKLY) as running:
        await running.serves("helper")
        listed = len(model.listed)

        async def probed_often() -> bool:
            return len(model.listed) > listed + 5

        await eventually(probed_often)

    assert server.status("helper") == later


async def test_before_all_tools_were_read_no_status_is_written(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    server.refuse = lambda request: (500, "not yet") if request.path.endswith("/team-a/tools") else None
    await server.put("agents", agent("helper"))
    async with running_cluster(server, tmp_path, model.url, periods=QUICKLY) as running:
        await running.serves("helper")
        listed = len(model.listed)

        async def probed_often() -> bool:
            return len(model.listed) > listed + 5

        await eventually(probed_often)
        assert server.statuses == []
        server.refuse = lambda _: None
        await running.status("helper", Ready="Ready")
