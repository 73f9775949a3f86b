"""Agent resources: from the API server to the requests of clients, without a restart."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.agent.cluster.running import OWN_PROMPT, RunningCluster, running_cluster
from tests.agent.cluster_objects import agent, tool
from tests.agent.model_server import ModelServer
from tests.agent.running_agent import user
from tests.agent.scripted_model import KEY, Reply, asks_for, says
from tests.patience import eventually
from tests.shim.support import serving
from tests.sources.api_server import ApiServer, api_server


@pytest.fixture
async def cluster(server: ApiServer, model: ModelServer, tmp_path: Path) -> AsyncIterator[RunningCluster]:
    async with running_cluster(server, tmp_path, model.url) as running:
        await ready(running)
        yield running


async def ready(running: RunningCluster) -> None:
    async def is_ready() -> bool:
        return (await running.http.get("/readyz")).status_code == 200

    await eventually(is_ready)


async def test_the_services_own_agent_is_always_there_with_the_tools_of_its_namespace(
    cluster: RunningCluster,
) -> None:
    await cluster.server.put("tools", tool("a.tool"))
    await cluster.server.put("tools", tool("elsewhere", "team-a"))
    await cluster.serves("beckon", system=OWN_PROMPT, model="m", tools=["a_tool"])
    state = (await cluster.http.get("/readyz")).json()

    assert state == {"status": "ready", "model": "m (native)", "tools": 2, "agents": ["beckon"]}


async def test_a_tool_reaches_the_next_request_and_leaves_with_its_resource(cluster: RunningCluster) -> None:
    await cluster.server.put("tools", tool("a"))
    await cluster.serves("beckon", tools=["a"])
    await cluster.server.put("tools", tool("b"))
    await cluster.serves("beckon", tools=["a", "b"])
    await cluster.server.put("tools", tool("a", ready="False"))
    await cluster.serves("beckon", tools=["b"])
    await cluster.server.delete("tools", "b")
    await cluster.serves("beckon", tools=[])


async def test_an_agent_has_its_own_prompt_model_and_choice_of_tools(cluster: RunningCluster) -> None:
    await cluster.server.put("tools", tool("mine", labels={"team": "x"}))
    await cluster.server.put("tools", tool("theirs"))
    spec: dict[str, Any] = {
        "systemPrompt": "Be brief.",
        "model": {"name": "other"},
        "tools": {"selector": {"matchLabels": {"team": "x"}}},
    }
    await cluster.server.put("agents", agent("helper", **spec))

    await cluster.serves("helper", system="Be brief.", model="other", tools=["mine"])
    assert await cluster.ask("default/helper") == await cluster.ask("helper")
    assert (await cluster.ask())["tools"] == ["mine", "theirs"]


async def test_an_agent_of_another_namespace_is_named_with_it_and_has_that_namespaces_tools(
    cluster: RunningCluster,
) -> None:
    await cluster.server.put("tools", tool("here"))
    await cluster.server.put("tools", tool("there", "team-a"))
    await cluster.server.put("agents", agent("helper", "team-a", systemPrompt="I am there."))
    await cluster.serves("team-a/helper", system="I am there.", tools=["there"])
    listed = (await cluster.http.get("/v1/models")).json()["data"]
    one = await cluster.http.get("/v1/models/team-a/helper")
    unknown = await cluster.http.get("/v1/models/helper")

    assert [found["id"] for found in listed] == ["beckon", "team-a/helper"]
    assert one.json()["id"] == "team-a/helper"
    assert unknown.status_code == 404
    assert "one of: beckon, team-a/helper" in unknown.json()["error"]["message"]


async def test_calls_carry_the_agent_as_their_source(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    model.script = [asks_for(("there", {"text": "x"})), says("done")]
    async with serving() as shim, running_cluster(server, tmp_path, model.url, shim=shim.url) as running:
        await server.put("tools", tool("there", "team-a"))
        await server.put("agents", agent("helper", "team-a"))
        await eventually(lambda: _is_there(running, "team-a/helper"))
        await running.post("team-a/helper")
        by_hand = await running.http.post(
            "/tools/there", params={"agent": "team-a/helper"}, json={"text": "y"}
        )

    assert by_hand.status_code in (200, 502)
    assert [post.headers["ce-source"] for post in shim.posts] == ["/beckon/agents/team-a/helper"] * 2
    assert {post.path for post in shim.posts} == {"/team-a/default"}


async def _is_there(running: RunningCluster, name: str) -> bool:
    return (await running.http.get(f"/v1/models/{name}")).status_code == 200


async def test_a_changed_agent_reaches_the_next_request_and_a_run_that_has_begun_keeps_its_own(
    cluster: RunningCluster, model: ModelServer
) -> None:
    held = asyncio.Event()
    await cluster.server.put("agents", agent("helper", systemPrompt="Before."))
    await cluster.serves("helper", system="Before.")
    call = asks_for(("nothing", {}))
    model.script = [Reply(call.pieces, holds=held)]
    running = asyncio.create_task(cluster.post("helper"))
    sent = len(model.requests)
    await eventually(lambda: _requested(model, sent + 1))
    await cluster.server.put("agents", agent("helper", systemPrompt="After."))
    await cluster.serves("helper", system="After.")
    held.set()
    text = (await running).json()["choices"][0]["message"]["content"]

    assert "Before." in text
    assert "After." not in text


async def _requested(model: ModelServer, number: int) -> bool:
    return len(model.requests) >= number


async def test_an_agent_that_is_deleted_is_unknown_and_its_run_comes_to_its_end(
    cluster: RunningCluster, model: ModelServer
) -> None:
    held = asyncio.Event()
    await cluster.server.put("agents", agent("helper", model={"baseURL": model.url}))
    await cluster.serves("helper")
    model.script = [Reply(asks_for(("nothing", {})).pieces, holds=held)]
    running = asyncio.create_task(cluster.post("helper"))
    sent = len(model.requests)
    await eventually(lambda: _requested(model, sent + 1))
    await cluster.server.delete("agents", "helper")
    await cluster.refuses("helper", 404, "set 'model' to one of: beckon")
    held.set()

    assert (await running).status_code == 200


async def test_an_agent_resource_takes_the_place_of_the_services_own_and_gives_it_back(
    cluster: RunningCluster,
) -> None:
    await cluster.server.put("agents", agent("beckon", systemPrompt="From a resource."))
    await cluster.serves("beckon", system="From a resource.")
    names = [one["id"] for one in (await cluster.http.get("/v1/models")).json()["data"]]
    await cluster.server.put("agents", agent("beckon", model={"apiKeySecret": {"name": "x"}}))
    await cluster.refuses("beckon", 503, "InvalidSpec")
    state = (await cluster.http.get("/readyz")).json()
    await cluster.server.delete("agents", "beckon")
    await cluster.serves("beckon", system=OWN_PROMPT)

    assert names == ["beckon"]
    assert (state["model"], state["agents"]) == (None, [])


async def test_an_agent_with_mistakes_takes_no_requests_and_says_where_they_are(
    cluster: RunningCluster,
) -> None:
    await cluster.server.put("agents", agent("helper", limits={"steps": 0}, sytemPrompt="typo"))
    status = await cluster.status(
        "helper", Accepted="InvalidSpec", ModelAnswers="NotProbed", Ready="InvalidSpec"
    )
    code = await cluster.error("helper")
    tools = await cluster.http.get("/tools", params={"agent": "helper"})
    await cluster.server.put("agents", agent("helper", systemPrompt="Mended."))
    await cluster.serves("helper", system="Mended.")

    message = status["conditions"][0]["message"]
    assert "spec.limits.steps: must be at least 1" in message
    assert "spec.sytemPrompt: unknown field" in message
    assert code[:2] == (503, "agent_not_ready")
    assert "(InvalidSpec): `kubectl -n default describe agent helper` says what to do" in code[2]
    assert (tools.status_code, tools.json()["type"]) == (503, "https://beckon.dev/problems/agent-not-ready")
    mended = await cluster.status("helper", Ready="Ready")
    assert mended["observedGeneration"] == 2


async def test_limits_of_an_agent_win_over_the_services(cluster: RunningCluster, model: ModelServer) -> None:
    await cluster.server.put("agents", agent("brief", limits={"steps": 1}))
    await cluster.serves("brief")
    model.script = [asks_for(("nothing", {}))]
    response = (await cluster.post("brief")).json()

    assert "has reached its limit of requests to the model" in response["choices"][0]["message"]["content"]


async def test_an_agent_by_hand_is_named_in_the_query_and_is_otherwise_the_services_own(
    cluster: RunningCluster,
) -> None:
    await cluster.server.put("tools", tool("here"))
    await cluster.server.put("tools", tool("there", "team-a"))
    await cluster.server.put("agents", agent("helper", "team-a"))
    await cluster.serves("team-a/helper", tools=["there"])
    own = (await cluster.http.get("/tools")).json()
    theirs = (await cluster.http.get("/tools", params={"agent": "team-a/helper"})).json()
    unknown = await cluster.http.post("/tools/there", params={"agent": "unknown"}, json={})

    assert [one["name"] for one in own["tools"]] == ["here"]
    assert [one["name"] for one in theirs["tools"]] == ["there"]
    assert unknown.status_code == 404
    assert "set 'agent' to one of: beckon, team-a/helper" in unknown.json()["detail"]


async def test_the_service_is_ready_once_everything_was_read(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    server.refuse = lambda request: (500, "not yet") if request.path.endswith("/team-a/agents") else None
    async with running_cluster(server, tmp_path, model.url) as running:
        await eventually(lambda: _listed(server, "/default/agents"))
        starting = await running.http.get("/readyz")
        early = await running.error("helper")
        server.refuse = lambda _: None
        await ready(running)
        late = await running.error("helper")

    assert (starting.status_code, starting.json()["status"]) == (503, "starting")
    assert early[:2] == (503, "overloaded")
    assert late[:2] == (404, "model_not_found")


async def test_a_namespace_that_may_not_be_read_keeps_the_others_from_nothing(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    """As after it was deleted with its roles: the rest must survive the next restart."""
    server.refuse = lambda request: (403, "forbidden") if "/team-a/" in request.path else None
    await server.put("tools", tool("here"))
    await server.put("tools", tool("there", "team-a"))
    await server.put("agents", agent("helper", "team-a"))
    async with running_cluster(server, tmp_path, model.url) as running:
        await ready(running)
        assert (await running.ask())["tools"] == ["here"]
        assert await _number(running, "connected") == 0
        server.refuse = lambda _: None
        await running.serves("team-a/helper", tools=["there"])


async def test_the_services_own_namespace_must_be_read(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    server.refuse = lambda request: (403, "forbidden") if "/default/" in request.path else None
    async with running_cluster(server, tmp_path, model.url) as running:
        await eventually(lambda: _listed(server, "/default/agents"))
        assert (await running.http.get("/readyz")).json()["status"] == "starting"
        server.refuse = lambda _: None
        await ready(running)


async def _listed(server: ApiServer, path: str) -> bool:
    return any(one.endswith(path) for one in server.lists)


async def test_without_a_model_the_service_starts_and_says_what_is_missing(
    server: ApiServer, model: ModelServer, tmp_path: Path
) -> None:
    async with running_cluster(server, tmp_path, "", key="") as running:
        await ready(running)
        own = await running.error("beckon")
        await server.put("agents", agent("without"))
        await server.put("agents", agent("with", model={"baseURL": model.url, "name": "m"}))
        status = await running.status("without", ModelAnswers="NoModel", Ready="NoModel")
        await running.serves("with", model="m")
        state = (await running.http.get("/readyz")).json()

    assert own[:2] == (503, "agent_not_ready")
    assert "OPENAI_BASE_URL" in own[2]
    assert "set spec.model.baseURL" in status["conditions"][1]["message"]
    assert (state["model"], state["agents"]) == (None, ["with"])


async def test_the_last_catalogue_stays_in_force_while_the_api_server_is_away(
    model: ModelServer, tmp_path: Path
) -> None:
    server = ApiServer()
    async with AsyncExitStack() as stack:
        async with api_server(server):
            await server.put("tools", tool("a"))
            await server.put("agents", agent("helper", systemPrompt="Still here."))
            running = await stack.enter_async_context(running_cluster(server, tmp_path, model.url))
            await running.serves("helper", system="Still here.", tools=["a"])
            await eventually(lambda: _connected(running, 1))  # once every watch has begun
        await eventually(lambda: _connected(running, 0))
        assert await running.ask("helper") == {"model": "m", "system": "Still here.", "tools": ["a"]}
        assert (await running.http.get("/readyz")).status_code == 200
        assert await _number(running, "age_seconds") >= 0


async def _connected(running: RunningCluster, value: int) -> bool:
    return await _number(running, "connected") == value


async def _number(running: RunningCluster, name: str) -> float:
    rows = (await running.http.get("/metrics")).text.splitlines()
    (row,) = [row for row in rows if row.startswith(f"beckon_agent_catalogue_{name} ")]
    return float(row.rpartition(" ")[2])


async def test_a_streamed_answer_names_the_agent_as_it_was_requested(cluster: RunningCluster) -> None:
    await cluster.server.put("agents", agent("helper", "team-a"))
    await cluster.serves("team-a/helper")
    response = await cluster.post("team-a/helper", stream=True, messages=[user("hi")])

    assert '"model":"team-a/helper"' in response.text
    assert KEY not in response.text


async def test_an_agent_says_how_many_tools_a_request_has_and_which_are_always_among_them(
    cluster: RunningCluster,
) -> None:
    for number in range(9):
        await cluster.server.put("tools", tool(f"order.step{number}"))
    few: dict[str, Any] = {"limits": {"tools": 4}}
    await cluster.server.put("agents", agent("few", **few))
    await cluster.server.put(
        "agents", agent("pinning", **few, tools={"pinned": ["order.step7", "order_step3"]})
    )

    await cluster.serves("beckon", tools=[f"order_step{number}" for number in range(9)])
    await cluster.serves("few", tools=["find_tools"])
    await cluster.serves("pinning", tools=["find_tools", "order_step7", "order_step3"])


async def test_agents_of_a_namespace_choose_among_their_own_tools_alone(cluster: RunningCluster) -> None:
    for number in range(9):
        await cluster.server.put("tools", tool(f"order.step{number}", labels={"odd": str(number % 2)}))
    for odd in "01":
        spec: dict[str, Any] = {
            "selector": {"matchLabels": {"odd": odd}},
            "pinned": ["order.step2", "order.step3"],
        }
        await cluster.server.put("agents", agent(f"odd{odd}", tools=spec, limits={"tools": 2}))

    await cluster.serves("odd0", tools=["find_tools", "order_step2"])
    await cluster.serves("odd1", tools=["find_tools", "order_step3"])
