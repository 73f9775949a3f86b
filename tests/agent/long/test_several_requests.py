"""Tools that request several inputs at once: forms, and of an MCP client its model and its folders."""

import asyncio
import json
from typing import Any

import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitResult,
    ListRootsResult,
)

from beckon_agent.core.run_types import Limits
from tests.agent.long.rig import ON_POSTGRESQL, Rig
from tests.agent.long.test_input import answer, waiting_input
from tests.agent.mcp.mcp_server import LEGACY, MODERN
from tests.agent.mcp.task_client import WITH_FORMS, WITH_TASKS, TaskClient
from tests.agent.scripted_model import asks_for, says

pytestmark = ON_POSTGRESQL

HAT = {"name": "hat"}
RED: dict[str, Any] = {"action": "accept", "content": {"colour": "red"}}
WORDS: dict[str, Any] = {"action": "accept", "content": {"words": "for you"}}
RHYME: dict[str, Any] = {
    "role": "assistant",
    "content": {"type": "text", "text": "hat and cat"},
    "model": "poet",
}
FOLDERS: dict[str, Any] = {"roots": [{"uri": "file:///home/ann", "name": "home"}]}
WITH_ALL: dict[str, Any] = {**WITH_FORMS, "sampling": {}, "roots": {}}


async def test_a_person_is_shown_one_form_after_the_other(rig: Rig) -> None:
    async with rig.agent(asks_for(("wrap", HAT)), says("Done.")) as agent:
        started = await agent.post(background=True)
        first = await waiting_input(agent, "Which paper for hat?")
        await answer(agent, first, RED)
        second = await waiting_input(agent, "Which words?")
        twice = await answer(agent, first, RED)
        # A form that is answered before its run goes on is not published any more.
        await agent.waits(second["run"])
        await answer(agent, second, {"action": "decline"})
        await agent.until(started["id"], "completed")
        log = await agent.http.get(f"/runs/{first['run']}/events", headers={"accept": "text/event-stream"})

    (result,) = agent.results_sent()
    assert json.loads(result) == {"paper": RED, "card": {"action": "decline", "content": None}}
    assert twice.status_code == 409
    assert log.text.count("event: input\n") == 2


async def test_what_only_a_client_of_mcp_can_answer_is_denied_elsewhere(rig: Rig) -> None:
    async with rig.agent(asks_for(("rhyme", {})), says("A pity.")) as agent:
        started = await agent.post(background=True)
        await agent.until(started["id"], "completed")
        by_hand = await agent.http.post("/tools/rhyme", json={})

    (result,) = agent.results_sent()
    assert '"denied"' in result
    assert (
        "rhyme needs sampling/createMessage of its client, which only a client at /mcp can answer" in result
    )
    assert by_hand.status_code == 403


async def test_a_late_request_that_no_one_can_answer_ends_the_call(rig: Rig) -> None:
    async with rig.agent(asks_for(("report", {})), says("A pity.")) as agent:
        started = await agent.post(background=True)
        call = await rig.tool.called()
        requests = {"requests": {"folders": {"method": "roots/list"}}}
        await rig.tool.answer(call, requests, **{"ce-beckonstate": "input_required"})
        await agent.until(started["id"], "completed")

    (result,) = agent.results_sent()
    assert "report needs roots/list of its client, which only a client at /mcp can answer" in result


async def test_a_client_gets_all_requests_in_one_result_and_may_answer_in_parts(rig: Rig) -> None:
    async with rig.agent() as agent:
        client = TaskClient(agent.http, WITH_ALL)
        first = await client.call("wrap", HAT)
        state = first["requestState"]
        some = {"rhyme": RHYME, "card": WORDS}
        second = await client.call("wrap", HAT, requestState=state, inputResponses=some)
        rest = {"paper": RED, "folders": FOLDERS}
        ended = await client.call("wrap", HAT, requestState=second["requestState"], inputResponses=rest)

    methods = {key: one["method"] for key, one in first["inputRequests"].items()}
    assert methods == {
        "paper": "elicitation/create",
        "card": "elicitation/create",
        "rhyme": "sampling/createMessage",
        "folders": "roots/list",
    }
    assert second["inputRequests"].keys() == {"paper", "folders"}
    answers = ended["structuredContent"]
    assert {key: one["action"] for key, one in answers.items()} == dict.fromkeys(methods, "accept")
    assert answers["rhyme"]["content"]["content"]["text"] == "hat and cat"
    assert answers["folders"]["content"]["roots"][0]["name"] == "home"


async def test_requests_that_a_client_cannot_answer_are_left_out(rig: Rig) -> None:
    async with rig.agent() as agent:
        client = TaskClient(agent.http, {"sampling": {}})
        first = await client.call("wrap", HAT)
        responses = {"rhyme": RHYME, "paper": RED}  # the second was not requested, and is ignored
        ended = await client.call("wrap", HAT, requestState=first["requestState"], inputResponses=responses)
        missing = await TaskClient(agent.http, WITH_FORMS).error("tools/call", name="rhyme", arguments={})

    assert first["inputRequests"].keys() == {"rhyme"}
    assert ended["structuredContent"].keys() == {"rhyme"}
    assert (missing["code"], missing["data"]) == (-32021, {"requiredCapabilities": {"sampling": {}}})
    assert "does not declare the capability 'sampling'" in missing["message"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"rhyme": FOLDERS}, "the answer to sampling/createMessage cannot be read"),
        ({"paper": {"action": "accept", "content": {}}}, "the answer to elicitation/create does not fit"),
        ({"folders": RHYME}, "the answer to roots/list cannot be read"),
    ],
)
async def test_an_answer_that_does_not_fit_is_an_error(rig: Rig, given: dict[str, Any], problem: str) -> None:
    async with rig.agent() as agent:
        client = TaskClient(agent.http, WITH_ALL)
        state = (await client.call("wrap", HAT))["requestState"]
        request = {"name": "wrap", "arguments": HAT, "requestState": state, "inputResponses": given}
        error = await client.error("tools/call", **request)

    assert error["code"] == -32602
    assert problem in error["message"]


async def test_too_long_a_completion_is_an_error(rig: Rig) -> None:
    long = {**RHYME, "content": {"type": "text", "text": "x" * 8_000}}
    async with rig.agent() as agent:
        client = TaskClient(agent.http, WITH_ALL)
        state = (await client.call("rhyme"))["requestState"]
        request = {"name": "rhyme", "arguments": {}, "requestState": state, "inputResponses": {"rhyme": long}}
        error = await client.error("tools/call", **request)

    assert "the answer is too long" in error["message"]


async def test_a_task_keeps_the_keys_of_what_is_not_answered(rig: Rig) -> None:
    async with rig.agent(limits=Limits(call_timeout=60)) as agent:
        client = TaskClient(agent.http, {**WITH_TASKS, **WITH_ALL})
        task = (await client.call("wrap", HAT))["taskId"]
        requests = (await client.until(task, "input_required"))["inputRequests"]
        paper, card, rhyme, folders = requests
        await client.result("tasks/update", taskId=task, inputResponses={paper: RED, rhyme: RHYME})
        left = (await client.get(task))["inputRequests"]
        await client.result("tasks/update", taskId=task, inputResponses={card: WORDS, folders: FOLDERS})
        await client.until(task, "completed")

    assert left == {key: requests[key] for key in (card, folders)}


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_the_client_of_the_sdk_answers_all(rig: Rig, mode: str) -> None:
    async def fill_in(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult.model_validate(RED if "paper" in params.message else WORDS)

    async def complete(
        context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult:
        await asyncio.sleep(0)
        return CreateMessageResult.model_validate(RHYME)

    async def list_folders(context: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult.model_validate(FOLDERS)

    async with (
        rig.agent() as agent,
        Client(
            f"{agent.http.base_url}/mcp",
            mode="legacy" if mode == LEGACY else mode,
            elicitation_callback=fill_in,
            sampling_callback=complete,
            list_roots_callback=list_folders,
        ) as client,
    ):
        result = await client.call_tool("wrap", HAT)

    assert result.is_error is not True, result
    assert result.structured_content is not None
    assert result.structured_content.keys() == {"paper", "card", "rhyme", "folders"}
    assert result.structured_content["rhyme"]["content"]["content"]["text"] == "hat and cat"
