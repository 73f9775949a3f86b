"""Tasks of agents that are processes: one is killed, another has the task, and only its owner gets it."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import httpx

from beckon_contract.api_keys import new_entry, new_key
from tests.agent.agent_process import AgentProcess, serving
from tests.agent.long.rig import Rig
from tests.agent.mcp.mcp_server import request
from tests.agent.mcp.task_client import FORM_SESSION, WITH_BOTH, TaskClient, messages
from tests.patience import PATIENCE
from tests.shim.support import KEY


def replica(rig: Rig, **settings: str) -> AbstractAsyncContextManager[AgentProcess]:
    """Run an agent in front of the rig's shim, over its database."""
    return serving(
        rig.folder,
        BECKON_SHIM_URL=rig.shim.url,
        BECKON_SHIM_KEYS=KEY,
        BECKON_STORE=rig.url,
        BECKON_CALL_TIMEOUT="60",
        BECKON_LEASE_SECONDS="1",
        BECKON_KEEP_DAYS="1",
        **settings,
    )


def keys_of(folder: Path, *names: str) -> tuple[dict[str, str], Mapping[str, str]]:
    """Return settings with a file of new keys, and the key of each name."""
    keys = {name: new_key() for name in names}
    file = folder / "keys.jsonl"
    file.write_text("".join(f"{new_entry(key, name).line()}\n" for name, key in keys.items()))
    return {"BECKON_KEYS_FILE": str(file)}, keys


def bearer(http: httpx.AsyncClient, key: str) -> TaskClient:
    """Return a client that sends this key."""
    http.headers["authorization"] = f"Bearer {key}"
    return TaskClient(http)


async def test_a_task_outlives_the_agent_that_made_it_and_another_replica_has_its_result(rig: Rig) -> None:
    async with replica(rig) as first, replica(rig, BECKON_PORT=str(rig.port)) as second:
        created = await TaskClient(first.http).call("report")
        posted = await rig.tool.called()
        first.kill()
        await first.ended()
        client = TaskClient(second.http)
        during = await client.get(created["taskId"])
        assert await rig.tool.answer(posted, {"pages": 42}) == 202
        ended = await client.until(created["taskId"], "completed")

    assert during["status"] == "working"
    assert ended["result"]["structuredContent"] == {"pages": 42}
    assert ended["ttlMs"] >= 86_400_000
    assert len(rig.tool.calls) == 1


async def test_a_task_that_was_never_sent_is_sent_by_the_replica_that_takes_it_over(rig: Rig) -> None:
    rig.tool.gate.clear()
    async with replica(rig) as first:
        created = await TaskClient(first.http).call("report")
        first.kill()
        await first.ended()
    rig.tool.gate.set()
    async with replica(rig, BECKON_PORT=str(rig.port)) as second:
        posted = await rig.tool.called()
        await rig.tool.answer(posted, {"pages": 42})
        ended = await TaskClient(second.http).until(created["taskId"], "completed")

    assert ended["result"]["structuredContent"] == {"pages": 42}


async def test_the_approval_of_a_task_outlives_the_agent_that_made_it(rig: Rig) -> None:
    async with replica(rig) as first, replica(rig) as second:
        created = await TaskClient(first.http, WITH_BOTH).call("danger")
        await TaskClient(first.http, WITH_BOTH).until(created["taskId"], "input_required")
        first.kill()
        await first.ended()
        client = TaskClient(second.http, WITH_BOTH)
        (key,) = (await client.get(created["taskId"]))["inputRequests"]
        await client.result(
            "tasks/update", taskId=created["taskId"], inputResponses={key: {"action": "accept"}}
        )
        ended = await client.until(created["taskId"], "completed")

    assert ended["result"]["structuredContent"] == {}
    assert len(rig.tool.calls) == 1


async def test_the_answer_to_a_form_may_reach_another_replica_than_the_call(rig: Rig) -> None:
    body = request("tools/call", {"name": "danger", "arguments": {}})
    async with (
        replica(rig) as first,
        replica(rig) as second,
        first.http.stream("POST", "/mcp", json=body, headers=FORM_SESSION) as stream,
    ):
        coming = messages(stream)
        form = await anext(coming)
        answer = {"jsonrpc": "2.0", "id": form["id"], "result": {"action": "accept", "content": {}}}
        taken = await second.http.post("/mcp", json=answer, headers=FORM_SESSION)
        result = await anext(coming)

    assert form["method"] == "elicitation/create"
    assert taken.status_code == 202
    assert result["result"]["structuredContent"] == {}


async def test_another_replica_cancels_a_task(rig: Rig) -> None:
    async with replica(rig) as first, replica(rig, BECKON_PORT=str(rig.port)) as second:
        created = await TaskClient(first.http).call("report")
        await rig.tool.called()
        await TaskClient(second.http).result("tasks/cancel", taskId=created["taskId"])
        ended = await TaskClient(first.http).get(created["taskId"])

    assert ended["status"] == "cancelled"


async def test_the_task_of_another_owner_is_not_found(rig: Rig, tmp_path: Path) -> None:
    settings, keys = keys_of(tmp_path, "ada", "bob")
    async with (
        replica(rig, BECKON_PORT=str(rig.port), **settings) as agent,
        httpx.AsyncClient(base_url=agent.http.base_url, timeout=PATIENCE) as other,
    ):
        ada, bob = bearer(agent.http, keys["ada"]), bearer(other, keys["bob"])
        created = await ada.call("report")
        await rig.tool.called()
        errors = [
            await bob.error(method, taskId=created["taskId"]) for method in ("tasks/get", "tasks/cancel")
        ]
        never = await bob.error("tasks/get", taskId="task_0")
        still = await ada.get(created["taskId"])

    for error in errors:
        assert error["code"] == -32602
        assert error["message"] == never["message"].replace("task_0", created["taskId"])
    assert still["status"] == "working"


async def test_another_owner_does_not_answer_a_form(rig: Rig, tmp_path: Path) -> None:
    settings, keys = keys_of(tmp_path, "ada", "bob")
    async with (
        replica(rig, **settings) as agent,
        httpx.AsyncClient(base_url=agent.http.base_url, timeout=PATIENCE) as other,
    ):
        ada, bob = bearer(agent.http, keys["ada"]), bearer(other, keys["bob"])
        ada.capabilities = WITH_BOTH
        created = await ada.call("danger")
        waiting = await ada.until(created["taskId"], "input_required")
        (key,) = waiting["inputRequests"]
        answer = {"jsonrpc": "2.0", "id": key, "result": {"action": "accept", "content": {}}}
        taken = await bob.http.post("/mcp", json=answer, headers=FORM_SESSION)
        still = await ada.get(created["taskId"])

    assert taken.status_code == 202  # as for any answer without a request
    assert still["status"] == "input_required"
    assert rig.tool.calls == []
