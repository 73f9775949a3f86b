"""A tool whose calls all fail says so in its Tool, and a tool stays offered through an outage."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.agent.cluster.running import RunningCluster, running_cluster
from tests.agent.cluster_objects import Document, tool
from tests.patience import eventually, until
from tests.shim.support import Posted, Server, serving
from tests.sources.api_server import ApiServer, refusing

NO_MODEL = "http://127.0.0.1:9/v1"  # calls by hand ask no model
REPLY = {"ce-specversion": "1.0", "ce-id": "r", "ce-source": "/t", "ce-type": "a.reply"}


@asynccontextmanager
async def calling(server: ApiServer, folder: Path) -> AsyncIterator[tuple[RunningCluster, Server]]:
    """Serve the agent of a cluster with the Tools `a` and `b`, in front of a shim that a test plays."""
    await server.put("tools", tool("a"))
    await server.put("tools", tool("b"))
    async with serving() as shim, running_cluster(server, folder, NO_MODEL, shim=shim.url) as running:
        yield running, shim


def failing(reason: str = "undeliverable") -> Any:
    async def behave(_: Posted) -> web.Response:
        return web.json_response(
            {"reason": reason, "detail": "secret words of a tool"},
            status=502,
            content_type="application/problem+json",
        )

    return behave


async def answering(_: Posted) -> web.Response:
    return web.json_response({"sum": 3}, headers=REPLY)


async def call(running: RunningCluster, name: str, times: int, body: object = None) -> list[str]:
    """Call a tool by hand so often; return what each call came to."""
    found = []
    for _ in range(times):
        response = await running.http.post(f"/tools/{name}", json=body or {"text": "x"})
        found.append("answered" if response.status_code == 200 else response.json().get("code", ""))
    return found


def condition(server: ApiServer, name: str) -> Document:
    """Return the condition Answering of a Tool, empty where it has none."""
    conditions = server.objects["tools", "default", name]["status"]["conditions"]
    return next((one for one in conditions if one["type"] == "Answering"), {})


async def reported(server: ApiServer, name: str, status: str) -> Document:
    async def as_wanted() -> bool:
        return bool(condition(server, name).get("status") == status)

    await eventually(as_wanted)
    return condition(server, name)


def patches(server: ApiServer) -> int:
    return sum(method == "PATCH" for method, _ in server.requests)


async def test_a_tool_whose_calls_all_fail_says_so_and_says_when_it_answers_again(
    server: ApiServer, tmp_path: Path
) -> None:
    async with calling(server, tmp_path) as (running, shim):
        await offered(running, "a")
        shim.behaviour = failing()
        await call(running, "a", 7)
        failed = await reported(server, "a", "False")
        shim.behaviour = answering
        assert await call(running, "a", 1) == ["answered"]
        again = await reported(server, "a", "True")

    assert (failed["reason"], again["reason"]) == ("CallsFail", "CallsAnswered")
    assert "gave no result" in failed["message"]
    assert "secret words" not in failed["message"]
    conditions = server.objects["tools", "default", "a"]["status"]["conditions"]
    assert [one["type"] for one in conditions] == ["Ready", "Answering"]
    assert not condition(server, "b")
    assert patches(server) == 2


async def test_a_tool_that_fails_now_and_then_is_never_written(server: ApiServer, tmp_path: Path) -> None:
    async with calling(server, tmp_path) as (running, shim):
        await offered(running, "a")
        for _ in range(3):
            shim.behaviour = failing()
            await call(running, "a", 4)
            shim.behaviour = answering
            await call(running, "a", 1)
        shim.behaviour = failing()
        await call(running, "b", 5)
        await reported(server, "b", "False")

    assert not condition(server, "a")
    assert patches(server) == 1


async def test_calls_that_the_agent_refuses_say_nothing_about_the_tool(
    server: ApiServer, tmp_path: Path
) -> None:
    async with calling(server, tmp_path) as (running, shim):
        await offered(running, "a")
        shim.behaviour = failing()
        await call(running, "a", 6, body={"text": {"a": 1}})
        assert not shim.posts
        await call(running, "b", 5)
        await reported(server, "b", "False")

    assert not condition(server, "a")


async def test_another_replica_that_gets_a_result_takes_the_word_back(
    server: ApiServer, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    async with calling(server, tmp_path) as (running, shim):
        await offered(running, "a")
        shim.behaviour = failing()
        await call(running, "a", 5)
        await reported(server, "a", "False")
        async with running_cluster(server, tmp_path / "other", NO_MODEL, shim=shim.url) as other:
            await offered(other, "a")
            await call(other, "a", 5)
            shim.behaviour = answering
            await call(other, "a", 1)
            await reported(server, "a", "True")

    assert patches(server) == 2


async def test_a_tool_that_the_operator_writes_meanwhile_is_reported_in_its_new_version(
    server: ApiServer, tmp_path: Path
) -> None:
    async with calling(server, tmp_path) as (running, shim):
        await offered(running, "a")
        server.refuse = lambda request: (409, "modified") if request.method == "PATCH" else None
        shim.behaviour = failing()
        await call(running, "a", 5)
        await until(lambda: patches(server) > 0)
        await server.put("tools", tool("a", description="Another."))
        server.refuse = lambda _: None
        await reported(server, "a", "False")

    assert server.objects["tools", "default", "a"]["spec"]["description"] == "Another."


async def test_an_agent_without_the_right_says_so_once_and_goes_on(
    server: ApiServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with calling(server, tmp_path) as (running, shim):
        await offered(running, "a")
        forbidden = refusing("tools is forbidden")
        server.refuse = lambda request: forbidden(request) if request.method == "PATCH" else None
        shim.behaviour = failing()
        await call(running, "a", 5)
        await call(running, "b", 5)
        await until(lambda: patches(server) > 1)
        shim.behaviour = answering
        assert await call(running, "a", 1) == ["answered"]

    assert caplog.text.count("the condition Answering of Tool") == 1


async def test_a_tool_is_offered_and_called_while_its_broker_is_away(
    server: ApiServer, tmp_path: Path
) -> None:
    away = tool("a")
    conditions = away["status"]["conditions"]
    conditions.insert(0, {"type": "Available", "status": "False", "reason": "BrokerUnavailable"})
    conditions[-1] |= {"reason": "BrokerUnavailable", "message": "Broker default is not ready for now"}
    async with calling(server, tmp_path) as (running, shim):
        await offered(running, "a")
        await server.put("tools", away)
        shim.behaviour = answering
        assert await call(running, "a", 3) == ["answered"] * 3
        listed = (await running.http.get("/tools")).json()["tools"]

    assert [one["name"] for one in listed] == ["a", "b"]


async def offered(running: RunningCluster, name: str) -> None:
    async def as_wanted() -> bool:
        listed = (await running.http.get("/tools")).json().get("tools", [])
        return name in [one["name"] for one in listed]

    await eventually(as_wanted)
