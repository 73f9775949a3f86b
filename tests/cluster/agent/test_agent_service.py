"""The agent service follows Tools and Agents of a real API server, with the rights of its own account."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from beckon_contract.cloudevents.events import CloudEvent, to_binary
from beckon_sources.api_client import ApiClient, connect
from beckon_sources.api_types import Change, Collection, Refused
from tests.agent.cluster_objects import agent as agent_document
from tests.agent.cluster_objects import event_type
from tests.agent.cluster_objects import tool as tool_document
from tests.agent.mcp.task_client import TaskClient
from tests.agent.model_server import ModelServer, model_server
from tests.cluster.agent.service import (
    Line,
    RunningService,
    agent_service,
    api_server_of,
    kubeconfig,
    rights,
)
from tests.cluster.kube import Kube, condition, until
from tests.patience import eventually


def put_tool(kube: Kube, name: str, /, **more: Any) -> None:
    kube.apply(json.dumps(tool_document(name, kube.namespace, **more)), "--server-side", "--force-conflicts")


def put_agent(kube: Kube, name: str, /, **spec: Any) -> None:
    kube.apply(json.dumps(agent_document(name, kube.namespace, **spec)))


def put_secret(kube: Kube, name: str, /, **entries: str) -> None:
    metadata = {"name": name, "namespace": kube.namespace}
    kube.apply(
        json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": entries})
    )


async def test_tools_and_agents_come_change_and_go_without_a_restart(
    home: Kube, team: Kube, model: ModelServer, tmp_path: Path
) -> None:
    for namespace in (home.namespace, team.namespace):
        rights(home, namespace)
    put_tool(home, "first.tool")
    config = kubeconfig(home, tmp_path)
    async with agent_service(config, (home.namespace, team.namespace), model.url) as service:
        await service.serves("beckon", tools=["first_tool"])
        put_tool(home, "second.tool")
        await service.serves("beckon", tools=["first_tool", "second_tool"])
        put_tool(home, "first.tool", ready="False")
        await service.serves("beckon", tools=["second_tool"])
        refused = (await service.http.get("/tools")).json()["refused"]
        home.run("delete", "tool", "second.tool")
        await service.serves("beckon", tools=[])

        put_tool(team, "theirs", labels={"team": "x"})
        put_tool(team, "other")
        selector = {"selector": {"matchLabels": {"team": "x"}}}
        put_agent(team, "helper", systemPrompt="Be brief.", tools=selector, model={"name": "other"})
        name = f"{team.namespace}/helper"
        await service.serves(name, system="Be brief.", tools=["theirs"], model="other")
        put_agent(team, "helper", systemPrompt="Be long.")
        await service.serves(name, system="Be long.", tools=["other", "theirs"], model="m")
        team.run("label", "tool", "other", "team=x")
        put_agent(team, "helper", systemPrompt="Be long.", tools=selector)
        await service.serves(name, tools=["other", "theirs"])
        team.run("delete", "agent", "helper")
        await service.refuses(name, 404, "set 'model' to one of: beckon")

    assert [(one["event_type"], one["reason"]) for one in refused] == [("first.tool", "NoTrigger")]


async def test_clients_read_the_events_of_an_event_type_that_is_no_tool(
    home: Kube, model: ModelServer, tmp_path: Path
) -> None:
    rights(home, home.namespace, with_events=True)
    home.apply(json.dumps(event_type("order.placed", home.namespace, description="An order was placed.")))
    config = kubeconfig(home, tmp_path)
    async with agent_service(config, (home.namespace,), model.url, BECKON_MCP_EVENTS="10") as service:
        client = TaskClient(service.http)

        async def is_listed() -> bool:
            listed = (await client.result("events/list"))["events"]
            return any(one["description"] == "An order was placed." for one in listed)

        await eventually(is_listed, 10)
        cursor = (await client.result("events/poll", name="order.placed"))["cursor"]
        headers, body = to_binary(CloudEvent("1", "/shop", "order.placed"))
        answer = await service.http.post("/feed", content=body, headers=dict(headers))
        page = await client.result("events/poll", name="order.placed", cursor=cursor)

    assert answer.status_code == 204
    assert [one["eventId"] for one in page["events"]] == ["/shop 1"]


async def test_the_status_says_what_became_of_an_agent(
    home: Kube, model: ModelServer, tmp_path: Path
) -> None:
    rights(home, home.namespace)
    put_tool(home, "a.tool")
    async with agent_service(kubeconfig(home, tmp_path), (home.namespace,), model.url):
        put_agent(home, "helper", model={"baseURL": model.url, "name": "m", "dialect": "native"})
        put_agent(home, "misled", model={"baseURL": model.url, "name": "missing"})
        put_agent(home, "lost", model={"baseURL": "http://127.0.0.1:9/v1"})
        put_agent(home, "keyless", model={"baseURL": model.url, "apiKeySecret": {"name": "beckon-model"}})
        put_agent(home, "curious", model={"baseURL": model.url, "apiKeySecret": {"name": "not-in-the-role"}})
        await asyncio.to_thread(home.wait, "agent/helper", condition="Ready", timeout=20)
        reasons = {
            "helper": "Ready",
            "misled": "NoSuchModel",
            "lost": "Unreachable",
            "keyless": "SecretNotFound",
            "curious": "SecretForbidden",
        }

        def shown() -> dict[str, str]:
            return {name: condition(home.find("agent", name), "Ready")[1] for name in reasons}

        await asyncio.to_thread(until, lambda: shown() == reasons, within=20, what=f"{reasons}")
        put_tool(home, "b.tool")
        await asyncio.to_thread(until, lambda: home.get("agent", "helper")["status"]["tools"] == 2)
        table = home.run("get", "agents")
        status = home.get("agent", "helper")["status"]

    columns, *rows = (line.split() for line in table.splitlines())
    assert columns == ["NAME", "MODEL", "TOOLS", "READY", "REASON", "AGE"]
    assert {row[0]: row[-3:-1] for row in rows}["misled"] == ["False", "NoSuchModel"]
    assert "m (native)" in table
    assert status["observedGeneration"] == 1
    assert (
        "the server has no model 'missing'; it has m, other"
        in condition(home.get("agent", "misled"), "Ready")[2]
    )
    assert "create secret generic beckon-model" in condition(home.get("agent", "keyless"), "Ready")[2]
    assert "resourceNames of the Role" in condition(home.get("agent", "curious"), "Ready")[2]


async def test_two_replicas_write_a_status_once_and_leave_it_alone(
    home: Kube, model: ModelServer, tmp_path: Path
) -> None:
    rights(home, home.namespace)
    (tmp_path / "second").mkdir()
    first, second = kubeconfig(home, tmp_path), kubeconfig(home, tmp_path / "second")
    async with (
        agent_service(first, (home.namespace,), model.url) as one,
        agent_service(second, (home.namespace,), model.url) as other,
    ):
        put_agent(home, "helper")
        tools = [tool_document(f"tool{number:02}", home.namespace) for number in range(20)]
        home.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": tools}), "--server-side")
        for service in (one, other):
            await service.serves("helper", tools=[f"tool{number:02}" for number in range(20)])
        await asyncio.to_thread(
            until, lambda: home.get("agent", "helper").get("status", {}).get("tools") == 20
        )
        await asyncio.to_thread(home.wait, "agent/helper", condition="Ready")
        settled = home.get("agent", "helper")["metadata"]["resourceVersion"]
        probes = len(model.listed)
        put_agent(home, "another")
        await other.serves("another")
        await asyncio.to_thread(home.wait, "agent/another", condition="Ready")

    assert home.get("agent", "helper")["metadata"]["resourceVersion"] == settled
    assert probes <= 8


async def test_a_key_that_is_rotated_reaches_the_service_without_a_restart(
    home: Kube, model: ModelServer, tmp_path: Path
) -> None:
    rights(home, home.namespace, "keys-of-helper")
    put_secret(home, "keys-of-helper", token="first-secret-key")
    async with (
        model_server(keys={"first-secret-key"}) as keyed,
        agent_service(kubeconfig(home, tmp_path), (home.namespace,), model.url) as service,
    ):
        secret = {"name": "keys-of-helper", "key": "token"}
        put_agent(home, "helper", model={"baseURL": keyed.url, "apiKeySecret": secret})
        await service.serves("helper")
        keyed.keys = {"second-secret-key"}
        put_secret(home, "keys-of-helper", token="second-secret-key")
        # A refused key is read again at once: no one has to wait for the half minute.
        await service.serves("helper", within=10)
        log = service.log.read_text("utf-8")
    shown = log + home.run("get", "agents", "-o", "yaml")

    assert "secret-key" not in shown
    assert {request.headers["authorization"] for request in model.requests} <= {""}


async def test_an_api_server_that_is_out_of_reach_takes_nothing_away(
    home: Kube, model: ModelServer, tmp_path: Path
) -> None:
    rights(home, home.namespace)
    put_tool(home, "before")
    line = Line(api_server_of(home))
    await line.join()
    config = kubeconfig(home, tmp_path, f"https://127.0.0.1:{line.port}")
    async with agent_service(config, (home.namespace,), model.url) as service:
        await service.serves("beckon", tools=["before"])
        await line.cut()

        await is_connected(service, 0)
        put_tool(home, "meanwhile")
        home.run("delete", "tool", "before")
        await service.serves("beckon", tools=["before"])
        assert (await service.http.get("/readyz")).status_code == 200
        await line.join()
        await service.serves("beckon", within=20, tools=["meanwhile"])
        await is_connected(service, 1)
        log = service.log.read_text("utf-8")
    await line.cut()

    assert log.count("cannot follow") <= 4, log
    assert log.count("the API server answers again") == 1


async def is_connected(service: RunningService, number: float) -> None:
    async def as_wanted() -> bool:
        return await service.number("beckon_agent_catalogue_connected") == number

    await eventually(as_wanted, 20)


async def test_rights_that_are_missing_are_named_in_the_log_and_hold_up_no_other_namespace(
    home: Kube, team: Kube, model: ModelServer, tmp_path: Path
) -> None:
    rights(home, home.namespace)
    put_agent(team, "helper", systemPrompt="I am there.")
    config = kubeconfig(home, tmp_path)
    async with agent_service(config, (home.namespace, team.namespace), model.url) as service:
        await service.serves("beckon", tools=[])

        async def shown() -> bool:
            return f"tools in namespace {team.namespace}" in service.log.read_text("utf-8")

        await eventually(shown, 10)
        rights(home, team.namespace)
        await service.serves(f"{team.namespace}/helper", within=20, system="I am there.")
        log = service.log.read_text("utf-8")

    assert "give the service account the role beckon-agent in that namespace" in log
    assert log.count(f"cannot follow tools in namespace {team.namespace}") == 1


async def test_a_new_tool_is_in_the_next_request_within_a_second(
    home: Kube, model: ModelServer, tmp_path: Path
) -> None:
    rights(home, home.namespace)
    async with agent_service(kubeconfig(home, tmp_path), (home.namespace,), model.url) as service:
        took = []
        for number in range(5):
            await asyncio.to_thread(put_tool, home, f"tool{number}")
            took.append(await seconds_until_known(service.http, f"tool{number}"))

    assert max(took) < 1.0


async def seconds_until_known(http: httpx.AsyncClient, name: str) -> float:
    begun = asyncio.get_running_loop().time()

    async def known() -> bool:
        tools = (await http.get("/tools")).json()["tools"]
        return any(tool["name"] == name for tool in tools)

    await eventually(known)
    return asyncio.get_running_loop().time() - begun


async def test_a_version_that_the_server_no_longer_knows_is_reported_as_gone(
    home: Kube, tmp_path: Path
) -> None:
    """The reflector then lists anew; here it is the real server's way to say so that counts."""
    rights(home, home.namespace)
    put_tool(home, "a.tool")
    collection = Collection("beckon.dev/v1alpha1", "tools", home.namespace)
    async with await connect("beckon-test", str(kubeconfig(home, tmp_path))) as api:
        page = await api.list_page(collection)
        with pytest.raises(Refused) as caught:
            await all_changes(api, collection, "1")
        quiet = await all_changes(api, collection, page.version)

    assert [found["metadata"]["name"] for found in page.items] == ["a.tool"]
    assert caught.value.gone
    assert {change.type for change in quiet} <= {"BOOKMARK"}


async def all_changes(api: ApiClient, collection: Collection, version: str) -> list[Change]:
    async with api.watch(collection, version, 3) as changes:
        return [change async for change in changes]
