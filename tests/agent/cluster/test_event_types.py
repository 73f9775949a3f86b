"""EventTypes that are no tools: followed where events are served, and not otherwise."""

from collections.abc import Sequence
from pathlib import Path

import httpx

from beckon_agent.agents.registry import AgentHandle
from tests.agent.cluster.running import RunningCluster, running_cluster
from tests.agent.cluster_objects import agent, event_type
from tests.agent.model_server import ModelServer
from tests.patience import eventually
from tests.sources.api_server import ApiServer, refusing


def offered(running: RunningCluster, name: str) -> Sequence[str]:
    found = running.cluster.find(name)
    assert isinstance(found, AgentHandle)
    return sorted(f"{one.type}: {one.description}" for one in found.event_types())


async def becomes(running: RunningCluster, name: str, *types: str) -> None:
    async def is_offered() -> bool:
        is_known = running.cluster.find(name) is not None
        return is_known and list(offered(running, name)) == list(types)

    await eventually(is_offered)


async def test_event_types_come_change_and_go_for_the_agents_of_their_namespace(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    await server.put("eventtypes", event_type("a.placed", description="First."))
    await server.put("eventtypes", event_type("theirs", "team-a"))
    await server.put("agents", agent("helper", "team-a"))
    async with running_cluster(server, tmp_path, model.url, with_events=True) as running:
        await becomes(running, "beckon", "a.placed: First.")
        await becomes(running, "team-a/helper", "theirs: ")
        await server.put("eventtypes", event_type("b.placed"))
        await server.put("eventtypes", event_type("a.placed", description="Second."))
        await becomes(running, "beckon", "a.placed: Second.", "b.placed: ")
        tool = event_type("b.placed", description="A tool by now.")
        tool["metadata"]["labels"] = {"beckon.dev/tool": "true"}
        await server.put("eventtypes", tool)
        await becomes(running, "beckon", "a.placed: Second.")
        await server.delete("eventtypes", "a.placed")
        await becomes(running, "beckon")


async def test_without_the_setting_no_event_type_is_read(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    async with running_cluster(server, tmp_path, model.url) as running:
        await _ready(running.http)

    assert not [path for path in server.lists if "eventtypes" in path]


async def test_a_missing_right_to_list_them_leaves_the_agent_ready(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    forbidden = refusing("forbidden")
    server.refuse = lambda request: forbidden(request) if "eventtypes" in request.path else None
    async with running_cluster(server, tmp_path, model.url, with_events=True) as running:
        await _ready(running.http)

        assert offered(running, "beckon") == []


async def _ready(http: httpx.AsyncClient) -> None:
    async def is_ready() -> bool:
        return (await http.get("/readyz")).status_code == 200

    await eventually(is_ready)
