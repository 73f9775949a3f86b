"""An agent as a tool of its MCP address: a message starts a stored run, and its answer is the result."""

import pytest
from mcp import Client

from beckon_agent.api.mcp.server import McpSettings
from tests.agent.long.rig import ON_POSTGRESQL, Rig
from tests.agent.long.test_approvals_by_form import ACCEPTED, Person, sdk_client
from tests.agent.mcp.mcp_server import LEGACY, MODERN
from tests.agent.mcp.task_client import WITH_BOTH, WITH_FORMS, TaskClient
from tests.agent.scripted_model import asks_for, refuses, says

pytestmark = ON_POSTGRESQL

WITH_AGENT = McpSettings(agent_tool=True)
MESSAGE = {"message": "How many pages?"}


async def test_it_is_listed_only_where_the_setting_says_so(rig: Rig) -> None:
    listed = []
    for settings in (None, WITH_AGENT):
        async with rig.agent(mcp=settings) as agent:
            tools = (await TaskClient(agent.http).result("tools/list"))["tools"]
            listed.append([tool["name"] for tool in tools])
            unknown = await TaskClient(agent.http).send("tools/call", name="run_agent", arguments={})

    without, with_agent = listed
    assert "run_agent" not in without
    assert with_agent == sorted([*without, "run_agent"])
    assert unknown["result"]["structuredContent"]["error"]["reason"] == "invalid_arguments"


async def test_its_run_is_a_task_with_the_answer_as_result(rig: Rig) -> None:
    async with rig.agent(says("It says 42."), mcp=WITH_AGENT) as agent:
        client = TaskClient(agent.http)
        created = await client.call("run_agent", MESSAGE)
        ended = await client.until(created["taskId"], "completed")

    body = agent.requests[0].body
    assert created["resultType"] == "task"
    assert ended["result"]["content"] == [{"type": "text", "text": "It says 42."}]
    assert body["messages"][-1]["content"] == MESSAGE["message"]
    assert "run_agent" not in [tool["function"]["name"] for tool in body["tools"]]


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_a_client_without_tasks_waits_for_the_answer(rig: Rig, mode: str) -> None:
    chosen = "legacy" if mode == LEGACY else mode
    async with (
        rig.agent(says("It says 42."), mcp=WITH_AGENT) as agent,
        Client(f"{agent.http.base_url}/mcp", mode=chosen) as client,
    ):
        result = await client.call_tool("run_agent", MESSAGE)

    assert result.is_error is not True
    assert [part.model_dump()["text"] for part in result.content] == ["It says 42."]


async def test_a_run_whose_tool_answers_later_goes_on_in_another_agent(rig: Rig) -> None:
    async with rig.agent(asks_for(("report", {})), mcp=WITH_AGENT) as agent:
        created = await TaskClient(agent.http).call("run_agent", MESSAGE)
        posted = await rig.tool.called()
        await agent.waits(created["taskId"])
    async with rig.agent(says("It says 42."), mcp=WITH_AGENT) as agent:
        client = TaskClient(agent.http)
        waiting = await client.get(created["taskId"])
        await rig.tool.answer(posted, {"pages": 42})
        ended = await client.until(created["taskId"], "completed")

    assert waiting["status"] == "working"
    assert ended["result"]["content"] == [{"type": "text", "text": "It says 42."}]


async def test_the_approvals_of_a_run_are_forms_of_its_task(rig: Rig) -> None:
    script = asks_for(("danger", {}), ("danger", {"force": True})), says("Done.")
    async with rig.agent(*script, mcp=WITH_AGENT) as agent:
        client = TaskClient(agent.http, WITH_BOTH)
        created = await client.call("run_agent", MESSAGE)
        task = created["taskId"]
        first, second = (await client.until(task, "input_required"))["inputRequests"]
        await client.result("tasks/update", taskId=task, inputResponses={first: ACCEPTED})
        left = (await client.get(task))["inputRequests"].keys()
        await client.result("tasks/update", taskId=task, inputResponses={second: ACCEPTED})
        ended = await client.until(task, "completed")

    assert left == {second}
    assert ended["result"]["content"] == [{"type": "text", "text": "Done."}]
    assert len(rig.tool.calls) == 2


async def test_the_approvals_of_a_run_reach_the_person_at_an_earlier_client(rig: Rig) -> None:
    person = Person.with_answer(ACCEPTED)
    async with (
        rig.agent(asks_for(("danger", {})), says("Done."), mcp=WITH_AGENT) as agent,
        sdk_client(agent, LEGACY, person) as client,
    ):
        result = await client.call_tool("run_agent", MESSAGE)

    assert len(person.seen) == len(rig.tool.calls) == 1
    assert result.is_error is not True


async def test_a_failed_run_is_a_failed_task_and_a_failed_result(rig: Rig) -> None:
    async with rig.agent(refuses(400, "no"), refuses(400, "no"), mcp=WITH_AGENT) as agent:
        client = TaskClient(agent.http)
        created = await client.call("run_agent", MESSAGE)
        ended = await client.until(created["taskId"], "failed")
        direct = await TaskClient(agent.http, {}).call("run_agent", MESSAGE)

    assert ended["error"]["code"] == -32603
    assert ended["error"]["message"] == ended["statusMessage"]
    assert direct["isError"] is True


async def test_each_form_of_its_run_is_a_result_for_a_client_without_tasks(rig: Rig) -> None:
    script = asks_for(("danger", {})), asks_for(("order", {"name": "hat"})), says("All is done.")
    answers = [ACCEPTED, {"action": "accept", "content": {"size": 7}}, {"action": "decline"}]
    seen: list[str] = []
    async with rig.agent(*script, mcp=WITH_AGENT) as agent:
        client = TaskClient(agent.http, WITH_FORMS)
        result = await client.call("run_agent", MESSAGE)
        for given in answers:
            ((key, form),) = result["inputRequests"].items()
            seen.append(form["params"]["message"].partition("\n")[0])
            more = {"requestState": result["requestState"], "inputResponses": {key: given}}
            other = await client.error("tools/call", name="run_agent", arguments={"message": "?"}, **more)
            result = await client.call("run_agent", MESSAGE, **more)

    assert seen == [
        "Allow the call of danger with these arguments?",
        "Which size of hat?",
        "Order hat in size 7?",
    ]
    assert "requestState" in other["message"]
    assert result["content"] == [{"type": "text", "text": "All is done."}]
