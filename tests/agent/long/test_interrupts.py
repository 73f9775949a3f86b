"""Forms of tools at `/ag-ui`: each is an interrupt, also beside an approval, and if it comes hours later."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from tests.agent.agui.conftest import kinds, read_events, result_of, text_of, user
from tests.agent.long import shop
from tests.agent.long.rig import ON_POSTGRESQL, LongAgent, Rig, reply
from tests.agent.scripted_model import asks_for, says
from tests.patience import PATIENCE, eventually
from tests.shim.support import Posted

pytestmark = ON_POSTGRESQL

HAT = asks_for(("order", {"name": "hat"}))
SIZE = {"size": 7}
YES = {"really": True}
FORM = {
    "message": "Which year?",
    "schema": {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]},
}


@pytest.fixture(autouse=True)
def nothing_ordered() -> None:
    """Forget the orders of other tests."""
    shop.ordered.clear()


async def run(agent: LongAgent, *resume: dict[str, Any]) -> list[Any]:
    """Return the events of a request: of a new run, or with answers to interrupts."""
    body = {"threadId": "t", "runId": "r", "messages": [user("go")], "resume": list(resume) or None}
    return read_events((await agent.http.post("/ag-ui", json=body)).text)


def interrupts_of(events: list[Any]) -> list[Any]:
    assert events[-1].type == "RUN_FINISHED", events[-1]
    assert events[-1].outcome.type == "interrupt", events[-1]
    found: list[Any] = events[-1].outcome.interrupts
    return found


def fill_in(interrupt: Any, payload: object) -> dict[str, Any]:
    return {"interruptId": interrupt.id, "status": "resolved", "payload": payload}


async def test_each_form_of_a_call_ends_the_run_with_an_interrupt(rig: Rig) -> None:
    async with rig.agent(HAT, says("It is ordered.")) as agent:
        begun = await run(agent)
        (first,) = interrupts_of(begun)
        (second,) = interrupts_of(await run(agent, fill_in(first, SIZE)))
        ended = await run(agent, fill_in(second, YES))
        again = await run(agent, fill_in(second, YES))

    (start,) = [event for event in begun if event.type == "TOOL_CALL_START"]
    assert (first.reason, first.tool_call_id) == ("input_required", start.tool_call_id)
    assert (first.message, second.message) == ("Which size of hat?", "Order hat in size 7?")
    assert first.response_schema["required"] == ["size"]
    assert "TOOL_CALL_START" not in kinds(ended)
    assert result_of(ended).content == "ordered hat in size 7"
    assert (text_of(ended), ended[-1].outcome.type) == ("It is ordered.", "success")
    assert (again, shop.ordered) == (ended, ["hat 7"])


async def test_forms_that_come_at_once_are_interrupts_one_after_the_other(rig: Rig) -> None:
    async with rig.agent(asks_for(("wrap", {"name": "hat"})), says("It is wrapped.")) as agent:
        (first,) = interrupts_of(await run(agent))
        paper = fill_in(first, {"colour": "red"})
        (second,) = interrupts_of(await run(agent, paper))
        (again,) = interrupts_of(await run(agent, paper))
        ended = await run(agent, fill_in(second, {"words": "for you"}))

    assert (first.message, second.message) == ("Which paper for hat?", "Which words?")
    assert again.id == second.id != first.id
    assert text_of(ended) == "It is wrapped."


async def test_a_cancelled_form_is_closed_and_the_model_reads_so(rig: Rig) -> None:
    async with rig.agent(HAT, says("As you like.")) as agent:
        (form,) = interrupts_of(await run(agent))
        rest = await run(agent, {"interruptId": form.id, "status": "cancelled"})
        results = agent.results_sent()

    assert (text_of(rest), shop.ordered) == ("As you like.", [])
    assert "did not fill it in: Which size of hat?" in results[0]


@pytest.mark.parametrize(
    ("change", "code", "cause"),
    [
        ({"payload": {"size": "large"}}, "invalid_resume", "`size` must be integer"),
        ({"payload": {}}, "invalid_resume", "`size`"),
        ({"payload": 7}, "invalid_resume", "an object with the fields of the form"),
        ({"interruptId": "inreq_none"}, "interrupt_not_found", "'inreq_none'"),
        ({"interruptId": "none"}, "interrupt_not_found", "'none'"),
    ],
)
async def test_an_answer_that_does_not_fit_leaves_the_form_open(
    rig: Rig, change: dict[str, Any], code: str, cause: str
) -> None:
    async with rig.agent(HAT, says("As you like.")) as agent:
        (form,) = interrupts_of(await run(agent))
        refused = await run(agent, {**fill_in(form, SIZE), **change})
        pending = await run(agent)
        (second,) = interrupts_of(await run(agent, fill_in(form, SIZE)))
        other = await run(agent, fill_in(form, {"size": 8}))

    assert (refused[-1].type, refused[-1].code) == ("RUN_ERROR", code)
    assert cause in refused[-1].message
    assert pending[-1].code == "interrupts_pending"
    assert form.id in pending[-1].message
    assert second.message == "Order hat in size 7?"
    assert other[-1].code == "already_decided"


async def test_an_approval_and_a_form_of_one_turn_are_answered_in_one_request(rig: Rig) -> None:
    both = asks_for(("order", {"name": "hat"}), ("danger", {}))
    async with rig.agent(both, says("Both are done.")) as agent:
        found = {one.reason: one for one in interrupts_of(await run(agent))}
        size, approval = (
            fill_in(found["input_required"], SIZE),
            fill_in(found["tool_call"], {"approved": True}),
        )
        half = await run(agent, size)
        (second,) = interrupts_of(await run(agent, size, approval))
        ended = await run(agent, fill_in(second, YES))

    assert half[-1].code == "interrupts_missing"
    assert found["tool_call"].id in half[-1].message
    assert second.message == "Order hat in size 7?"
    assert (text_of(ended), shop.ordered) == ("Both are done.", ["hat 7"])
    assert len(rig.tool.calls) == 1


async def test_a_form_that_comes_later_ends_the_open_stream_with_its_interrupt(rig: Rig) -> None:
    async with rig.agent(asks_for(("report", {})), says("It says 42.")) as agent:
        stream = asyncio.create_task(run(agent))
        call = await rig.tool.called()
        assert await rig.tool.answer(call, FORM, **{"ce-beckonstate": "input_required"}) == 202
        (form,) = interrupts_of(await stream)
        rest = asyncio.create_task(run(agent, fill_in(form, {"year": 2026})))
        again = await rig.tool.called(2)
        await rig.tool.answer(again, {"pages": 42})
        ended = await rest

    assert (form.message, form.response_schema) == (FORM["message"], FORM["schema"])
    assert "2026" in again.headers["ce-beckoninput"]
    assert (result_of(ended).content, text_of(ended)) == ('{"pages":42}', "It says 42.")


async def test_a_form_that_comes_while_another_call_is_made_ends_the_stream_as_well(rig: Rig) -> None:
    async def answer_the_quick_last(call: Posted) -> web.Response:
        if call.headers["ce-type"] == "hurried":
            await rig.tool.gate.wait()
        return web.Response(body=b"{}", headers={**reply(call), "ce-beckonstate": "accepted"})

    rig.tool.by_hand.behaviour = answer_the_quick_last
    rig.tool.gate.clear()
    async with rig.agent(asks_for(("report", {}), ("hurried", {})), says("It says 42.")) as agent:
        stream = asyncio.create_task(run(agent))
        await rig.tool.called(2)
        report = rig.tool.call("report")

        async def form_is_stored() -> bool:
            return await rig.tool.answer(
                report, FORM, **{"ce-beckonstate": "input_required"}
            ) == 202 and bool((await agent.http.get("/inputs")).json()["data"])

        await eventually(form_is_stored)
        rig.tool.gate.set()
        (form,) = interrupts_of(await asyncio.wait_for(stream, PATIENCE))

    assert form.message == FORM["message"]
