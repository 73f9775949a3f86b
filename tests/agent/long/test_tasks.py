"""A slow tool's call by an MCP client is a task: a stored run, of which any replica knows the state."""

import asyncio

import pytest
from mcp import Client

from beckon_agent.core.run_types import Limits
from tests.agent.long.rig import ON_POSTGRESQL, Rig
from tests.agent.mcp.mcp_server import LEGACY, MODERN
from tests.agent.mcp.task_client import TASKS, TaskClient
from tests.agent.scripted_model import says
from tests.patience import eventually

pytestmark = ON_POSTGRESQL

SLOW = Limits(call_timeout=60)


async def test_a_slow_call_is_a_task_with_the_result_at_its_end(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        client = TaskClient(agent.http)
        created = await client.call("report")
        posted = await rig.tool.called()
        working = await client.get(created["taskId"])
        await rig.tool.answer(posted, {"pages": 42})
        ended = await client.until(created["taskId"], "completed")
        later = await client.get(created["taskId"])

    assert created["resultType"] == "task"
    assert created["status"] == working["status"] == "working"
    assert not {"result", "error", "inputRequests", "requestState"} & (created.keys() | working.keys())
    assert ended["resultType"] == "complete"
    assert ended["result"]["structuredContent"] == {"pages": 42}
    assert "isError" not in ended["result"]
    assert ended["createdAt"] == created["createdAt"] <= ended["lastUpdatedAt"]
    assert ended["ttlMs"] is None
    assert later["result"] == ended["result"]
    assert agent.requests == []
    assert len(rig.tool.calls) == 1


async def test_an_agent_that_is_started_anew_has_the_task_and_its_result(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        created = await TaskClient(agent.http).call("report")
        posted = await rig.tool.called()
        await agent.waits(created["taskId"])
    async with rig.agent(limits=SLOW) as agent:
        client = TaskClient(agent.http)
        waiting = await client.get(created["taskId"])
        await rig.tool.answer(posted, {"pages": 42})
        ended = await client.until(created["taskId"], "completed")

    assert waiting["status"] == "working"
    assert waiting["statusMessage"] == "the tool has accepted the call, and answers later"
    assert ended["result"]["structuredContent"] == {"pages": 42}
    assert len(rig.tool.calls) == 1


async def test_the_last_report_of_the_tool_is_the_message_of_its_task(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        client = TaskClient(agent.http)
        created = await client.call("report")
        posted = await rig.tool.called()
        await agent.waits(created["taskId"])
        await rig.tool.report(posted, 2)

        async def has_report() -> bool:
            task = await client.get(created["taskId"])
            return bool(task["statusMessage"] == "page 2 (2 of 3)")

        await eventually(has_report)


async def test_a_cancelled_task_stays_cancelled_when_the_answer_comes(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        client = TaskClient(agent.http)
        created = await client.call("report")
        posted = await rig.tool.called()
        await agent.waits(created["taskId"])
        first = await client.result("tasks/cancel", taskId=created["taskId"])
        second = await client.result("tasks/cancel", taskId=created["taskId"])
        await rig.tool.answer(posted, {"pages": 42})
        ended = await client.get(created["taskId"])

    for acknowledged in (first, second):
        assert acknowledged.keys() == {"resultType", "_meta"}
        assert acknowledged["resultType"] == "complete"
    assert ended["status"] == "cancelled"
    assert "result" not in ended


async def test_a_failure_of_the_tool_is_the_result_of_a_completed_task(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        client = TaskClient(agent.http)
        task = await client.call("report")
        posted = await rig.tool.called()
        await rig.tool.answer(posted, {"error": {"reason": "tool_failed", "message": "no paper"}})
        ended = await client.until(task["taskId"], "completed")

    assert ended["result"]["isError"] is True
    assert ended["result"]["structuredContent"]["error"]["message"] == "no paper"


async def test_a_tool_with_a_short_limit_and_bad_arguments_make_no_task(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        hurried = await TaskClient(agent.http).call("hurried")
        refused = await TaskClient(agent.http).call("ask", {"question": []})
        unknown = await TaskClient(agent.http).error("tools/call", name="nothing", arguments={})

    assert hurried["structuredContent"]["error"]["reason"] == "timeout"
    assert refused["structuredContent"]["error"]["reason"] == "invalid_arguments"
    assert unknown["code"] == -32602


async def test_a_client_without_the_extension_gets_no_task(rig: Rig) -> None:
    rig.tool.state = "done"
    async with rig.agent(limits=SLOW) as agent:
        plain = await TaskClient(agent.http, {}).call("report")
        missing = await TaskClient(agent.http, {}).error("tasks/get", taskId="task_1")

    assert plain["resultType"] == "complete"
    assert plain["structuredContent"] == {}
    assert missing["code"] == -32021
    assert missing["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}


async def test_a_subscriber_gets_each_change_of_its_tasks(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        client = TaskClient(agent.http)
        created = await client.call("report")
        posted = await rig.tool.called()
        await agent.waits(created["taskId"])
        wanted = {"taskIds": [created["taskId"], "task_0"]}
        async with client.stream("subscriptions/listen", notifications=wanted) as coming:
            acknowledged = await anext(coming)
            first = await anext(coming)
            await rig.tool.answer(posted, {"pages": 42})
            last = await anext(coming)
            while last["params"]["status"] == "working":  # the call has its result, and its run still works
                last = await anext(coming)

    assert acknowledged["params"]["notifications"] == {"taskIds": [created["taskId"]]}
    assert first["method"] == last["method"] == "notifications/tasks"
    assert first["params"]["status"] == "working"
    assert first["params"]["ttlMs"] is None
    assert last["params"]["status"] == "completed"
    assert last["params"]["result"]["structuredContent"] == {"pages": 42}
    assert last["params"]["_meta"] == first["params"]["_meta"] == acknowledged["params"]["_meta"]


async def test_a_subscription_that_cannot_be_read_is_refused(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        client = TaskClient(agent.http)
        wrong = [
            await client.error("subscriptions/listen", notifications={"taskIds": ids})
            for ids in ("task_0", [7], ["task_0"] * 21)
        ]
        undeclared = TaskClient(agent.http, {})
        missing = await undeclared.error("subscriptions/listen", notifications={"taskIds": ["task_0"]})

    assert [error["code"] for error in wrong] == [-32602] * 3
    assert missing["code"] == -32021


@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_a_client_without_tasks_waits_for_the_late_answer(rig: Rig, mode: str) -> None:
    async with rig.agent(limits=SLOW) as agent, Client(f"{agent.http.base_url}/mcp", mode=mode) as client:
        calling = asyncio.create_task(client.call_tool("report", {}))
        posted = await rig.tool.called()
        await rig.tool.answer(posted, {"pages": 42})
        result = await calling

    assert result.structured_content == {"pages": 42}


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel"])
async def test_an_unknown_task_is_an_error_of_the_request(rig: Rig, method: str) -> None:
    async with rig.agent(limits=SLOW) as agent:
        unknown = await TaskClient(agent.http).error(method, taskId="task_0")
        long = await TaskClient(agent.http).error(method, taskId="t" * 201)
        none = await TaskClient(agent.http).error(method)

    assert unknown["code"] == -32602
    assert "there is no task 'task_0'" in unknown["message"]
    assert long["code"] == none["code"] == -32602


async def test_a_header_of_another_task_is_refused(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        client = TaskClient(agent.http)
        created = await client.call("report")
        other = await client.error("tasks/get", name="task_0", taskId=created["taskId"])

    assert other["code"] == -32020


async def test_a_run_of_another_face_is_no_task(rig: Rig) -> None:
    async with rig.agent(says("Hello."), limits=SLOW) as agent:
        response = await agent.post()
        unknown = await TaskClient(agent.http).error("tasks/get", taskId=response["id"])

    assert response["status"] == "completed"
    assert unknown["code"] == -32602


async def test_clients_of_earlier_revisions_have_no_tasks(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": LEGACY}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"taskId": "task_0"}}
        answer = await agent.http.post("/mcp", json=body, headers=headers)

    assert answer.json()["error"]["code"] == -32601
