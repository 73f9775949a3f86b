"""Tools that put a form to a person in the middle of a call: stored runs, and each revision of MCP."""

import asyncio
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

from beckon_agent.core.run_types import Limits
from beckon_agent.store.sql.open import open_store
from tests.agent.durable.crashing import Crashing
from tests.agent.long import shop
from tests.agent.long.rig import LongAgent, Rig, begin_run
from tests.agent.mcp.mcp_server import LEGACY, MODERN
from tests.agent.mcp.task_client import MISSING_FORMS, WITH_FORMS, WITH_TASKS, TaskClient
from tests.agent.scripted_model import asks_for, says
from tests.patience import eventually, until

HAT = {"name": "hat"}
SIZE: dict[str, Any] = {"action": "accept", "content": {"size": 7}}
YES: dict[str, Any] = {"action": "accept", "content": {"really": True}}
DECLINED = {"action": "decline"}


@pytest.fixture(autouse=True)
def nothing_ordered() -> None:
    """Forget the orders of other tests."""
    shop.ordered.clear()


async def waiting_input(agent: LongAgent, message: str) -> dict[str, Any]:
    """Return the one waiting form once it has this message."""
    found: list[dict[str, Any]] = []

    async def has_come() -> bool:
        found[:] = (await agent.http.get("/inputs")).json()["data"]
        return [one["message"] for one in found] == [message]

    await eventually(has_come)
    return found[0]


async def answer(agent: LongAgent, form: dict[str, Any], body: dict[str, Any]) -> httpx.Response:
    return await agent.http.post(f"/inputs/{form['id']}", json=body)


async def test_a_run_waits_for_each_form_and_goes_on_with_the_answer(rig: Rig) -> None:
    async with rig.agent(asks_for(("order", HAT)), says("Done.")) as agent:
        started = await agent.post(background=True)
        first = await waiting_input(agent, "Which size of hat?")
        run = (await agent.http.get(f"/runs/{first['run']}")).json()
        wrong = await answer(agent, first, {"action": "accept", "content": {"size": 100}})
        taken = await answer(agent, first, SIZE)
        second = await waiting_input(agent, "Order hat in size 7?")
        twice = await answer(agent, first, SIZE)
        await answer(agent, second, YES)
        ended = await agent.until(started["id"], "completed")
        late = await answer(agent, second, YES)
        log = await agent.http.get(f"/runs/{first['run']}/events", headers={"accept": "text/event-stream"})

    assert first["schema"]["properties"]["size"]["maximum"] == 99
    (call,) = run["steps"][0]["calls"]
    assert (call["state"], call["input"]["id"], call["input"]["action"]) == ("input", first["id"], None)
    assert (wrong.status_code, wrong.json()["type"].rpartition("/")[2]) == (400, "invalid-input")
    assert "100" in wrong.json()["detail"]
    assert taken.json()["action"] == "accept"
    assert twice.status_code == late.status_code == 409
    assert ended["output"][-1]["content"][0]["text"] == "Done."
    assert agent.results_sent() == ["ordered hat in size 7"]
    assert shop.ordered == ["hat 7"]
    assert log.text.count("event: input\n") == 2


async def test_a_form_outlives_its_agent_and_may_be_declined(rig: Rig) -> None:
    async with rig.agent(asks_for(("order", HAT))) as agent:
        started = await agent.post(background=True)
        form = await waiting_input(agent, "Which size of hat?")
    async with rig.agent(says("As you like.")) as agent:
        await answer(agent, form, DECLINED)
        await agent.until(started["id"], "completed")

    (result,) = agent.results_sent()
    assert "did not fill it in: Which size of hat?" in result
    assert shop.ordered == []


async def test_a_form_that_is_never_filled_in_ends_with_a_timeout(rig: Rig) -> None:
    script = asks_for(("order", HAT)), says("A pity.")
    async with rig.agent(*script, limits=Limits(call_timeout=5, late_seconds=2)) as agent:
        started = await agent.post(background=True)
        await waiting_input(agent, "Which size of hat?")
        await agent.until(started["id"], "completed")
        left = (await agent.http.get("/inputs")).json()["data"]

    (result,) = agent.results_sent()
    assert '"timeout"' in result
    assert "order requested input of a person, and no answer has come in time" in result
    assert (left, shop.ordered) == ([], [])


async def test_a_form_of_others_or_of_no_one_is_unknown(rig: Rig) -> None:
    async with rig.agent() as agent:
        unknown = await answer(agent, {"id": "inreq_x.0.0"}, SIZE)
        unreadable = await answer(agent, {"id": "inreq_x.0.0"}, {"action": "perhaps"})

    assert (unknown.status_code, unreadable.status_code) == (404, 400)


async def test_without_a_stored_run_the_call_is_denied(rig: Rig) -> None:
    async with rig.agent() as agent:
        by_hand = await agent.http.post("/tools/order", json=HAT)

    assert by_hand.status_code == 403
    assert "needs input of a person" in by_hand.json()["detail"]


async def test_a_client_of_mcp_gets_each_form_as_a_result_and_repeats_its_call(rig: Rig) -> None:
    async with rig.agent() as agent:
        client = TaskClient(agent.http, WITH_FORMS)
        first = await client.call("order", HAT)
        ((key, form),) = first["inputRequests"].items()
        state = first["requestState"]
        again = await client.call("order", HAT, requestState=state)
        second = await client.call("order", HAT, requestState=state, inputResponses={key: SIZE})
        (other,) = second["inputRequests"]
        ended = await client.call("order", HAT, requestState=state, inputResponses={other: YES})

    assert first["resultType"] == second["resultType"] == "input_required"
    assert form["method"] == "elicitation/create"
    assert form["params"]["message"] == "Which size of hat?"
    assert again["inputRequests"].keys() == {key}
    assert second["inputRequests"][other]["params"]["message"] == "Order hat in size 7?"
    assert ended["content"][0]["text"] == "ordered hat in size 7"
    assert shop.ordered == ["hat 7"]


async def test_a_tool_that_has_requested_input_is_called_once_before_its_next_form(rig: Rig) -> None:
    async with rig.agent() as agent:
        client = TaskClient(agent.http, WITH_FORMS)
        counts = []
        for _ in range(3):
            shop.calls.clear()
            first = await client.call("order", HAT)
            counts.append((first["resultType"], len(shop.calls)))
        (key,) = first["inputRequests"]
        answered = await client.call("order", HAT, inputResponses={key: SIZE, "unknown": YES})
        missing = await TaskClient(agent.http, {}).error("tools/call", name="order", arguments=HAT)

    # Nothing says of a tool that it requests input: the first call is made again, as a stored run.
    assert counts == [("input_required", 2), ("input_required", 1), ("input_required", 1)]
    (second,) = answered["inputRequests"].values()  # an answer may come with the first request, too
    assert second["params"]["message"] == "Order hat in size 7?"
    assert missing["code"] == MISSING_FORMS[0]


async def test_a_state_of_another_call_and_a_wrong_answer_are_errors(rig: Rig) -> None:
    async with rig.agent() as agent:
        client = TaskClient(agent.http, WITH_FORMS)
        first = await client.call("order", HAT)
        (key,) = first["inputRequests"]
        state, right = first["requestState"], {key: SIZE}
        changed = [
            await client.error("tools/call", **params)
            for params in (
                {"name": "order", "arguments": HAT, "requestState": f"{state}x", "inputResponses": right},
                {"name": "order", "arguments": {"name": "coat"}, "requestState": state},
                {
                    "name": "order",
                    "arguments": HAT,
                    "requestState": state,
                    "inputResponses": {key: {"action": "accept", "content": {"size": "large"}}},
                },
            )
        ]

    assert [error["code"] for error in changed] == [-32602] * 3
    assert "requestState" in changed[0]["message"]
    assert "`size` must be integer" in changed[2]["message"]
    assert shop.ordered == []


@pytest.mark.parametrize("capabilities", [{}, WITH_TASKS])
async def test_a_call_of_a_client_without_forms_is_an_error(rig: Rig, capabilities: dict[str, Any]) -> None:
    async with rig.agent() as agent:
        error = await TaskClient(agent.http, capabilities).error("tools/call", name="order", arguments=HAT)

    assert (error["code"], error["data"]) == MISSING_FORMS
    assert "order needs input of a person" in error["message"]
    assert shop.ordered == []


async def test_a_form_that_comes_later_to_a_client_without_forms_is_an_error(rig: Rig) -> None:
    form = {"message": "Which year?"}
    async with rig.agent() as agent:
        client = TaskClient(agent.http, {})
        coming = asyncio.create_task(client.error("tools/call", name="report", arguments={}))
        call = await rig.tool.called()
        await rig.tool.answer(call, form, **{"ce-beckonstate": "input_required"})
        error = await coming

    assert (error["code"], error["data"]) == MISSING_FORMS


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_the_client_of_the_sdk_shows_both_forms(rig: Rig, mode: str) -> None:
    seen: list[str] = []

    async def fill_in(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        seen.append(params.message)
        return ElicitResult.model_validate(YES if "Order" in params.message else SIZE)

    chosen = "legacy" if mode == LEGACY else mode
    async with (
        rig.agent() as agent,
        Client(f"{agent.http.base_url}/mcp", mode=chosen, elicitation_callback=fill_in) as client,
    ):
        result = await client.call_tool("order", HAT)

    assert seen == ["Which size of hat?", "Order hat in size 7?"]
    assert result.is_error is not True
    assert shop.ordered == ["hat 7"]


@pytest.mark.parametrize(
    ("notes", "lands"), [(0, False), (0, True), (1, False), (2, False), (2, True), (3, False), (3, True)]
)
async def test_a_process_may_die_at_each_step_before_the_answer(rig: Rig, notes: int, *, lands: bool) -> None:
    """All steps but one: after the mark that a call is sent, it is never known whether it was."""
    hat = asks_for(("order", HAT))
    store = await open_store(rig.url)
    dying = Crashing(store, notes, lands=lands)
    async with rig.worker(dying, hat) as (engine, service):
        run_id = await begin_run(engine, service)
        await until(lambda: dying.dead)
    turn_is_lost = notes == 0 and not lands
    async with rig.agent(*([hat] if turn_is_lost else []), says("Done.")) as agent:
        for message, body in (("Which size of hat?", SIZE), ("Order hat in size 7?", YES)):
            taken = await answer(agent, await waiting_input(agent, message), body)
            assert taken.status_code == 200, taken.text

        async def is_completed() -> bool:
            return bool((await agent.http.get(f"/runs/{run_id}")).json()["status"] == "completed")

        await eventually(is_completed)
        results = agent.results_sent()
    await store.aclose()

    assert results == ["ordered hat in size 7"]
    assert shop.ordered == ["hat 7"]
