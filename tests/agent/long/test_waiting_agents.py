"""An agent that has to wait is itself a tool that answers later."""

import httpx

from beckon_contract.cloudevents.events import from_http, to_binary
from tests.agent.events.answering_agent import asking
from tests.agent.long.rig import LongAgent, Rig
from tests.agent.scripted_model import asks_for, refuses, says
from tests.patience import eventually
from tests.shim.support import Posted

REPORT = asks_for(("report", {}))
QUESTION = asks_for(("ask", {"question": "What does the report say?"}))


async def test_an_agent_that_waits_for_a_long_tool_answers_the_agent_that_called_it(rig: Rig) -> None:
    script = QUESTION, REPORT, says("It says 42."), says("So it is 42.")
    async with rig.agent(*script) as agent:
        begun = await agent.post()
        assert begun["status"] == "in_progress"
        await _report(rig)

        ended = await agent.until(begun["id"], "completed")

        assert ended["output"][0]["output"] == '{"answer":"It says 42."}'
        assert ended["output"][1]["content"][0]["text"] == "So it is 42."
        assert len(agent.requests) == 4


async def test_all_of_them_may_be_started_anew_meanwhile(rig: Rig) -> None:
    async with rig.agent(QUESTION, REPORT) as agent:
        begun = await agent.post()
        call = await rig.tool.called()
    async with rig.agent(says("It says 42."), says("So it is 42.")) as agent:
        await rig.tool.answer(call, 42)

        ended = await agent.until(begun["id"], "completed")
        assert ended["output"][0]["output"] == '{"answer":"It says 42."}'


async def test_an_agent_that_fails_after_it_waited_shows_that(rig: Rig) -> None:
    async with rig.agent(QUESTION, REPORT, refuses(400, "no credit left"), says("Sorry.")) as agent:
        begun = await agent.post()
        await _report(rig)
        ended = await agent.until(begun["id"], "completed")

        failure = ended["output"][0]["error"]["content"]
        assert failure["reason"] == "tool_failed"
        assert "no credit left" in failure["message"]


async def test_an_agent_whose_run_is_cancelled_while_it_waits_shows_that_at_once(rig: Rig) -> None:
    async with rig.agent(QUESTION, REPORT, says("Sorry.")) as agent:
        begun = await agent.post()
        await rig.tool.called()
        runs = (await agent.http.get("/runs")).json()["data"]
        (waiting,) = [run["id"] for run in runs if run["id"].startswith("event_")]
        await agent.waits(waiting)
        await agent.engine.cancel(waiting)

        ended = await agent.until(begun["id"], "completed")
        assert "the run is cancelled" in ended["output"][0]["error"]["content"]["message"]


async def test_an_event_that_comes_again_is_answered_with_what_the_run_came_to(rig: Rig) -> None:
    async with rig.agent(REPORT, says("It says 42.")) as agent:
        first = await _deliver(agent)
        await _report(rig)
        answers: list[httpx.Response] = []

        async def is_answered() -> bool:
            answers.append(await _deliver(agent))
            return "ce-beckonstate" not in answers[-1].headers

        await eventually(is_answered)

        accepted = from_http(first.headers.raw, first.content)
        answered = from_http(answers[-1].headers.raw, answers[-1].content)
        assert (accepted.extensions["beckonstate"], accepted.data) == ("accepted", None)
        assert answered.json() == {"answer": "It says 42."}
        assert accepted.id != answered.id


async def test_without_a_broker_to_answer_to_it_is_reported_as_a_time_out(rig: Rig) -> None:
    rig.answers_later = False
    async with rig.agent(REPORT) as agent:
        shown = await _deliver(agent)

        assert from_http(shown.headers.raw, shown.content).json()["error"]["reason"] == "timeout"  # type: ignore[index]  # a JSON object


async def _report(rig: Rig) -> Posted:
    call = await rig.tool.called()
    assert await rig.tool.answer(call, 42) == 202
    return call


async def _deliver(agent: LongAgent) -> httpx.Response:
    """Deliver an event whose sender waits for the reply, as a Broker does."""
    headers, body = to_binary(asking())
    response = await agent.http.post("/events/beckon", content=body, headers=dict(headers))
    assert response.status_code == 200, response.text
    return response
