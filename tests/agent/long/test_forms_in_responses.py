"""Forms of tools in the Responses API: each is an approval item of the response that waits."""

import json
from typing import Any

import httpx
import pytest

from tests.agent.long import shop
from tests.agent.long.rig import ON_POSTGRESQL, LongAgent, Rig
from tests.agent.responses.running_face import events_of
from tests.agent.scripted_model import asks_for, says

pytestmark = ON_POSTGRESQL

HAT = asks_for(("order", {"name": "hat"}))


@pytest.fixture(autouse=True)
def nothing_ordered() -> None:
    """Forget the orders of other tests."""
    shop.ordered.clear()


async def create(agent: LongAgent, given: str | list[dict[str, Any]], **more: Any) -> httpx.Response:
    body = {"model": "beckon", "input": given, "include": ["mcp_call"], **more}
    return await agent.http.post("/v1/responses", json=body)


def forms_of(response: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for item in response["output"] if item["type"] == "mcp_approval_request"]


def fill_in(form: dict[str, Any], fields: object = None, *, approve: bool = True) -> dict[str, Any]:
    reason = {} if fields is None else {"reason": json.dumps(fields)}
    return {
        "type": "mcp_approval_response",
        "approval_request_id": form["id"],
        "approve": approve,
        **reason,
    }


async def test_each_form_is_an_item_and_the_response_goes_on_with_its_answer(rig: Rig) -> None:
    async with rig.agent(HAT, says("It is ordered.")) as agent:
        first = (await create(agent, "go")).json()
        (size,) = forms_of(first)
        second = (await create(agent, [fill_in(size, {"size": 7})], previous_response_id=first["id"])).json()
        _, sure = forms_of(second)
        read = (await agent.http.get(f"/v1/responses/{first['id']}")).json()
        ended = (await create(agent, [fill_in(sure, {"really": True})])).json()
        again = (await create(agent, [fill_in(sure, {"really": True})])).json()
        other = await create(agent, [fill_in(sure, {"really": False})])
        late = (await agent.http.get(f"/v1/responses/{first['id']}")).json()

    assert first["status"] == second["status"] == "in_progress"
    assert (size["name"], size["id"][:6]) == ("order", "inreq_")
    shown = json.loads(size["arguments"])
    assert (shown["message"], shown["schema"]["required"]) == ("Which size of hat?", ["size"])
    assert json.loads(sure["arguments"])["message"] == "Order hat in size 7?"
    assert read["status"] == "in_progress"
    assert forms_of(read)[-1] == sure
    assert {one["id"] for one in (first, second, ended, again)} == {first["id"]}
    assert ended["status"] == "completed"
    assert ended["output"][-1]["content"][0]["text"] == "It is ordered."
    assert forms_of(ended) == [size, sure]
    assert [item["type"] for item in ended["output"]] == [item["type"] for item in late["output"]]
    assert again["output"] == ended["output"]
    assert other.status_code == 409
    assert shop.ordered == ["hat 7"]


async def test_a_stream_has_the_form_and_the_stream_of_the_answer_the_rest(rig: Rig) -> None:
    async with rig.agent(HAT, says("As you like.")) as agent:
        begun = events_of(await create(agent, "go", stream=True))
        (form,) = [
            event["item"]
            for event in begun
            if event["type"] == "response.output_item.done"
            and event["item"]["type"] == "mcp_approval_request"
        ]
        rest = events_of(await create(agent, [fill_in(form, approve=False)], stream=True))

    assert begun[-1]["type"] == "response.in_progress"
    assert rest[: len(begun)] == begun
    assert rest[-1]["type"] == "response.completed"
    (result,) = agent.results_sent()
    assert "did not fill it in: Which size of hat?" in result


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"size": 100}, "input.0.reason: does not fit the form"),
        (None, "`size` is required"),
        ("large", "must be a JSON object with the fields of the form"),
    ],
)
async def test_an_answer_that_does_not_fit_names_the_field(rig: Rig, fields: object, problem: str) -> None:
    async with rig.agent(HAT) as agent:
        (form,) = forms_of((await create(agent, "go")).json())
        wrong = await create(agent, [fill_in(form, fields)])
        unknown = await create(agent, [fill_in({"id": "inreq_resp_x.0.0"}, {"size": 7})])
        while_it_waits = await create(agent, "hello?", previous_response_id=form["id"].split(".")[0][6:])

    assert wrong.status_code == 400
    assert problem in wrong.json()["error"]["message"]
    assert unknown.status_code == 404
    assert while_it_waits.status_code == 409


async def test_a_form_after_an_approval_belongs_to_the_response_of_the_decision(rig: Rig) -> None:
    rig.tool.state = "done"
    calls = asks_for(("order", {"name": "hat"}), ("danger", {}))
    async with rig.agent(calls, says("Both are done.")) as agent:
        first = (await create(agent, "go")).json()
        form, approval = sorted(forms_of(first), key=lambda item: item["id"])
        filled = (await create(agent, [fill_in(form, {"size": 7})])).json()
        second = (await create(agent, [fill_in(approval)])).json()
        sure = forms_of(second)[-1]
        read = (await agent.http.get(f"/v1/responses/{second['id']}")).json()
        ended = (await create(agent, [fill_in(sure, {"really": True})])).json()

    assert first["status"] == "completed"
    assert (filled["id"], filled["status"]) == (first["id"], "completed")
    assert (second["id"] != first["id"], second["status"]) == (True, "in_progress")
    assert json.loads(sure["arguments"])["message"] == "Order hat in size 7?"
    assert forms_of(read)[-1] == sure
    assert (ended["id"], ended["status"]) == (second["id"], "completed")
    assert ended["output"][-1]["content"][0]["text"] == "Both are done."
