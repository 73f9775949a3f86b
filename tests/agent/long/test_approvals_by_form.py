"""A call that needs an approval at `/mcp`: the person at the client decides, in each revision's manner."""

from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

from beckon_agent.core.run_types import Limits
from tests.agent.long.rig import ON_POSTGRESQL, LongAgent, Rig
from tests.agent.mcp.mcp_server import LEGACY, MODERN, request
from tests.agent.mcp.task_client import (
    FORM_SESSION,
    MISSING_FORMS,
    WITH_BOTH,
    WITH_FORMS,
    WITH_TASKS,
    TaskClient,
    messages,
)
from tests.patience import eventually

pytestmark = ON_POSTGRESQL

SLOW = Limits(call_timeout=60)
ACCEPTED = {"action": "accept", "content": {"reason": "it is Tuesday"}}
DECLINED = {"action": "decline"}
CLOSED = {"action": "cancel"}
refusals = pytest.mark.parametrize(
    ("answer", "cause"),
    [(DECLINED, "a person did not allow this call"), (CLOSED, "the form was closed without a decision")],
)


def reason_of(result: dict[str, Any]) -> tuple[str, str]:
    """Return the reason and the message of a failure."""
    assert result["isError"] is True, result
    error = result["structuredContent"]["error"]
    return error["reason"], error["message"]


async def waiting_task(client: TaskClient) -> tuple[str, str, dict[str, Any]]:
    """Create a task that waits for an approval; return its id, and the key and the request of its form."""
    created = await client.call("danger")
    waiting = await client.until(created["taskId"], "input_required")
    ((key, form),) = waiting["inputRequests"].items()
    return created["taskId"], key, form


async def test_a_task_waits_for_the_person_and_makes_the_call_when_the_form_is_accepted(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        client = TaskClient(agent.http, WITH_BOTH)
        task, key, form = await waiting_task(client)
        assert rig.tool.calls == []
        acknowledged = await client.result("tasks/update", taskId=task, inputResponses={key: ACCEPTED})
        ended = await client.until(task, "completed")
        run = (await agent.http.get(f"/runs/{task}")).json()

    assert form["method"] == "elicitation/create"
    assert form["params"]["mode"] == "form"
    assert form["params"]["message"].startswith("Allow the call of danger with these arguments?")
    assert acknowledged.keys() == {"resultType", "_meta"}
    assert ended["result"]["structuredContent"] == {}
    assert "inputRequests" not in ended
    assert len(rig.tool.calls) == 1
    assert "it is Tuesday" in str(run)


@refusals
async def test_a_task_ends_with_the_refusal_when_the_form_is_not_accepted(
    rig: Rig, answer: dict[str, Any], cause: str
) -> None:
    async with rig.agent(limits=SLOW) as agent:
        client = TaskClient(agent.http, WITH_BOTH)
        task, key, _ = await waiting_task(client)
        await client.result("tasks/update", taskId=task, inputResponses={key: answer})
        ended = await client.until(task, "completed")

    reason, message = reason_of(ended["result"])
    assert reason == "denied"
    assert cause in message
    assert rig.tool.calls == []


async def test_answers_to_other_forms_are_ignored_and_a_wrong_one_is_an_error(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        client = TaskClient(agent.http, WITH_BOTH)
        task, key, _ = await waiting_task(client)
        await client.result("tasks/update", taskId=task, inputResponses={"other": {"unknown": True}})
        wrong = await client.error("tasks/update", taskId=task, inputResponses={key: {"roots": []}})
        bad = await client.error("tasks/update", taskId=task, inputResponses={key: {"action": "perhaps"}})
        none = await client.error("tasks/update", taskId=task)
        still = await client.get(task)

    assert wrong["code"] == bad["code"] == none["code"] == -32602
    assert still["status"] == "input_required"


async def test_a_task_may_be_decided_at_the_approvals_of_its_owner(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        client = TaskClient(agent.http, WITH_BOTH)
        task, _, _ = await waiting_task(client)
        (waiting,) = (await agent.http.get("/approvals")).json()["data"]
        decided = await agent.http.post(f"/approvals/{waiting['id']}", json={"approve": True})
        ended = await client.until(task, "completed")

    assert decided.status_code == 200
    assert ended["result"]["structuredContent"] == {}


async def test_a_waiting_task_outlives_its_agent_and_can_be_cancelled(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        task, key, _ = await waiting_task(TaskClient(agent.http, WITH_BOTH))
    async with rig.agent(limits=SLOW) as agent:
        client = TaskClient(agent.http, WITH_BOTH)
        again = await client.get(task)
        await client.result("tasks/cancel", taskId=task)
        await client.result("tasks/update", taskId=task, inputResponses={key: ACCEPTED})
        ended = await client.get(task)

    assert again["inputRequests"].keys() == {key}
    assert ended["status"] == "cancelled"
    assert rig.tool.calls == []


async def test_without_tasks_the_result_requests_the_approval_and_the_call_is_repeated(rig: Rig) -> None:
    async with rig.agent() as agent:
        client = TaskClient(agent.http, WITH_FORMS)
        first = await client.call("danger")
        ((key, form),) = first["inputRequests"].items()
        assert rig.tool.calls == []
        second = await client.call("danger", inputResponses={key: ACCEPTED})

    assert first["resultType"] == "input_required"
    assert form["method"] == "elicitation/create"
    assert second["resultType"] == "complete"
    assert second["structuredContent"] == {}
    assert len(rig.tool.calls) == 1


@refusals
async def test_without_tasks_the_result_is_the_refusal_of_the_person(
    rig: Rig, answer: dict[str, Any], cause: str
) -> None:
    async with rig.agent() as agent:
        client = TaskClient(agent.http, WITH_FORMS)
        (key,) = (await client.call("danger"))["inputRequests"]
        refused = await client.call("danger", inputResponses={key: answer})

    reason, message = reason_of(refused)
    assert reason == "denied"
    assert cause in message
    assert rig.tool.calls == []


async def test_an_answer_for_other_arguments_requests_the_approval_again(rig: Rig) -> None:
    async with rig.agent() as agent:
        client = TaskClient(agent.http, WITH_FORMS)
        (key,) = (await client.call("danger"))["inputRequests"]
        (other,) = (await client.call("danger", {"force": True}))["inputRequests"]
        again = await client.call("danger", {"force": True}, inputResponses={key: ACCEPTED})

    assert key != other
    assert again["inputRequests"].keys() == {other}
    assert rig.tool.calls == []


async def test_a_long_list_of_arguments_is_cut_in_the_form(rig: Rig) -> None:
    async with rig.agent() as agent:
        first = await TaskClient(agent.http, WITH_FORMS).call("danger", {"text": "x" * 20_000})

    ((_, form),) = first["inputRequests"].items()
    assert len(form["params"]["message"]) < 11_000
    assert form["params"]["message"].endswith("characters more")


@pytest.mark.parametrize("capabilities", [{}, WITH_TASKS, {"elicitation": {"url": {}}}])
async def test_without_forms_the_call_is_an_error_with_the_missing_capability(
    rig: Rig, capabilities: dict[str, Any]
) -> None:
    async with rig.agent(limits=SLOW) as agent:
        answer = await TaskClient(agent.http, capabilities).post("tools/call", name="danger", arguments={})

    error = answer.json()["error"]
    assert answer.status_code == 400
    assert (error["code"], error["data"]) == MISSING_FORMS
    assert "does not declare the capability 'elicitation'" in error["message"]
    assert rig.tool.calls == []


class Person:
    """Answers the forms of the SDK's client."""

    def __init__(self, answer: ElicitResult) -> None:
        self.answer = answer
        self.seen: list[ElicitRequestParams] = []

    @classmethod
    def with_answer(cls, answer: dict[str, Any]) -> "Person":
        """Return a person who answers all forms like this."""
        return cls(ElicitResult.model_validate(answer))

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.seen.append(params)
        return self.answer


def sdk_client(agent: LongAgent, mode: str, person: Person | None) -> Client:
    """Return the SDK's client of one revision."""
    chosen = "legacy" if mode == LEGACY else mode
    return Client(f"{agent.http.base_url}/mcp", mode=chosen, elicitation_callback=person)


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
@pytest.mark.parametrize("answer", [ACCEPTED, DECLINED, CLOSED])
async def test_the_client_of_the_sdk_shows_the_form_and_gets_the_result(
    rig: Rig, mode: str, answer: dict[str, Any]
) -> None:
    person = Person.with_answer(answer)
    async with rig.agent() as agent, sdk_client(agent, mode, person) as client:
        result = await client.call_tool("danger", {})

    (seen,) = person.seen
    assert "danger" in seen.message
    assert result.is_error is not (answer is ACCEPTED)
    assert len(rig.tool.calls) == (answer is ACCEPTED)


async def test_an_earlier_client_of_the_sdk_without_a_person_is_denied(rig: Rig) -> None:
    async with rig.agent() as agent, sdk_client(agent, LEGACY, None) as client:
        result = await client.call_tool("danger", {})

    assert result.is_error is True
    assert result.structured_content is not None
    assert "elicitation" in result.structured_content["error"]["message"]


async def test_a_client_of_the_sdk_without_a_person_raises_the_error(rig: Rig) -> None:
    async with rig.agent() as agent, sdk_client(agent, MODERN, None) as client:
        with pytest.raises(MCPError, match="needs a person's approval") as raised:
            await client.call_tool("danger", {})

    assert (raised.value.code, raised.value.data) == MISSING_FORMS


async def test_a_call_is_cancelled_when_its_client_goes_before_the_decision(rig: Rig) -> None:
    async with rig.agent() as agent:
        body = request("tools/call", {"name": "danger", "arguments": {}})
        async with agent.http.stream("POST", "/mcp", json=body, headers=FORM_SESSION) as stream:
            form = await anext(messages(stream))

        async def is_cancelled() -> bool:
            run = await agent.store.runs.get(form["id"].partition(".")[0])
            return run is not None and run.status == "cancelled"

        await eventually(is_cancelled)

    assert form["method"] == "elicitation/create"
    assert rig.tool.calls == []


async def test_a_malformed_answer_is_refused_and_one_to_nothing_is_ignored(rig: Rig) -> None:
    async with rig.agent(limits=SLOW) as agent:
        _, key, _ = await waiting_task(TaskClient(agent.http, WITH_BOTH))
        answers = [
            {"jsonrpc": "2.0", "id": key, "result": {"action": "perhaps"}},
            {"jsonrpc": "2.0", "id": "task_0.0.0", "result": ACCEPTED},
            {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "no"}},
        ]
        statuses = [
            (await agent.http.post("/mcp", json=answer, headers=FORM_SESSION)).status_code
            for answer in answers
        ]
        pinged = await agent.http.post("/mcp", json=request("ping", {}), headers=FORM_SESSION)

    assert statuses == [400, 202, 202]
    assert pinged.status_code == 200
    assert rig.tool.calls == []
