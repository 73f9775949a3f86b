"""A tool that takes hours: no connection is held, and its answer resumes exactly that call, once."""

import asyncio
import json
import re
from contextlib import AsyncExitStack

import pytest

from beckon_agent.core.run_types import Limits
from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store
from tests.agent.durable.crashing import Crashing
from tests.agent.long.rig import LongAgent, Rig, begin_run, reply
from tests.agent.replay.replaying import events
from tests.agent.running_agent import user
from tests.agent.scripted_model import Script, asks_for, says
from tests.broker.broker_process import write_manifests
from tests.patience import eventually, until

REPORT = asks_for(("report", {}))
IN_SHOP = ("order", "wrap", "rhyme")


async def test_a_call_that_was_taken_holds_no_connection_and_its_answer_resumes_the_run(rig: Rig) -> None:
    async with rig.agent(REPORT, says("It says 42.")) as agent:
        begun = await agent.post()
        call = await rig.tool.called()

        assert begun["status"] == "in_progress"
        assert await rig.shim.metric("beckon_shim_waiting_calls") == 0
        assert [item["status"] for item in begun["output"]] == ["in_progress"]

        assert await rig.tool.answer(call, {"pages": 42}) == 202
        ended = await agent.until(begun["id"], "completed")

        assert [item["type"] for item in ended["output"]] == ["mcp_call", "message"]
        assert ended["output"][0]["output"] == '{"pages":42}'
        assert agent.results_sent() == ['{"pages":42}']
        assert len(rig.tool.calls) == 1


async def test_the_token_by_which_an_answer_is_known_is_not_stored_with_its_event(rig: Rig) -> None:
    async with rig.agent(REPORT, says("It says 42.")) as agent:
        begun = await agent.post()
        call = await rig.tool.called()
        await rig.tool.answer(call, {"pages": 42})
        await agent.until(begun["id"], "completed")
        (in_store,) = await agent.store.history.list_exchanged(begun["id"], after=None, most=9)
        shown = await agent.http.get(f"/runs/{begun['id']}/events")

    (exchanged,) = shown.json()["data"]
    assert exchanged["reply"]["replyid"] == "(token)"
    assert exchanged["reply"]["data"] == {"pages": 42}
    assert call.token not in shown.text
    assert call.token not in json.dumps(in_store.reply)


async def test_late_replies_and_resumed_runs_are_counted(rig: Rig) -> None:
    async with rig.agent(REPORT, says("It says 42.")) as agent:
        begun = await agent.post()
        call = await rig.tool.called()
        await agent.http.post("/late-replies", content=b"42", headers={**reply(call), "ce-replyid": "forged"})
        await rig.tool.answer(call, 42)
        await agent.until(begun["id"], "completed")
        await agent.http.post("/late-replies", content=b"42", headers=reply(call))
        numbers = (await agent.http.get("/metrics")).text

    for outcome in ("taken", "refused"):
        assert f'beckon_agent_late_replies_total{{outcome="{outcome}"}} 1.0' in numbers
    repeated = re.search(r'beckon_agent_late_replies_total{outcome="repeated"} (\d+)', numbers)
    assert repeated is not None
    assert int(repeated[1]) >= 1  # on a busy machine the Broker may have delivered it twice, too
    assert 'beckon_agent_runs_resumed_total{after="wait"} 1.0' in numbers
    assert 'after="loss"' not in numbers


async def test_an_agent_that_is_started_anew_takes_the_answer(rig: Rig) -> None:
    async with rig.agent(REPORT) as agent:
        begun = await agent.post()
        call = await rig.tool.called()
    async with rig.agent(says("It says 42.")) as agent:
        assert await rig.tool.answer(call, 42) == 202
        ended = await agent.until(begun["id"], "completed")

        assert ended["output"][0]["output"] == "42"
        assert agent.results_sent() == ["42"]
        assert len(rig.tool.calls) == 1


async def test_an_answer_that_comes_while_no_agent_is_there_waits_at_the_broker(rig: Rig) -> None:
    async with rig.agent(REPORT) as agent:
        begun = await agent.post()
        call = await rig.tool.called()
    assert await rig.tool.answer(call, 42) == 202
    refused = 'beckon_shim_replies_total{outcome="late_refused"}'

    async def was_refused() -> bool:
        return await rig.shim.metric(refused) > 0

    await eventually(was_refused)
    async with rig.agent(says("It says 42.")) as agent:
        await agent.until(begun["id"], "completed")
        assert agent.results_sent() == ["42"]


async def test_an_answer_that_comes_twice_counts_once(rig: Rig) -> None:
    async with rig.agent(REPORT, says("Done.")) as agent:
        begun = await agent.post()
        call = await rig.tool.called()
        await rig.tool.answer(call, "first")
        await agent.until(begun["id"], "completed")

        for _ in range(2):
            again = await agent.http.post("/late-replies", content=b'"second"', headers=reply(call))
            assert again.status_code == 202
        ended = await agent.until(begun["id"], "completed")

        assert ended["output"][0]["output"] == "first"
        assert len(agent.requests) == 2


async def test_calls_beside_it_are_done_and_the_model_learns_of_all_at_once(rig: Rig) -> None:
    async with rig.agent(asks_for(("report", {}), ("report", {})), says("Both.")) as agent:
        begun = await agent.post()
        await rig.tool.called(2)
        first, second = sorted(rig.tool.calls, key=lambda call: call.headers["ce-id"])
        await rig.tool.answer(second, "second")

        async def is_stored() -> bool:
            found = await agent.store.journal.find_call(second.headers["ce-id"])
            return found is not None and found[1].state == "done"

        await eventually(is_stored)
        assert len(agent.requests) == 1

        await rig.tool.answer(first, "first")
        await agent.until(begun["id"], "completed")
        assert agent.results_sent() == ["first", "second"]


async def test_an_answer_that_does_not_come_in_time_is_reported_as_that(rig: Rig) -> None:
    async with rig.agent(asks_for(("hurried", {})), says("Too slow.")) as agent:
        begun = await agent.post()
        call = await rig.tool.called()
        ended = await agent.until(begun["id"], "completed")

        assert ended["output"][0]["error"]["content"]["reason"] == "timeout"
        assert '"reason":"timeout"' in agent.results_sent()[0]
        assert await rig.tool.answer(call, 42) == 202
        late = await agent.http.post("/late-replies", content=b"42", headers=reply(call))
        assert late.status_code == 202
        assert await agent.until(begun["id"], "completed") == ended


async def test_a_limit_of_the_agents_counts_where_the_event_type_names_none(rig: Rig) -> None:
    limits = Limits(call_timeout=5, late_seconds=0.3)
    async with rig.agent(REPORT, says("Too slow."), limits=limits) as agent:
        begun = await agent.post()
        await agent.until(begun["id"], "completed")

        assert '"reason":"timeout"' in agent.results_sent()[0]


async def test_a_call_whose_agent_died_is_finished_by_its_answer_and_not_sent_again(rig: Rig) -> None:
    rig.tool.gate.clear()
    rig.tool.state = "answered"
    async with rig.agent(says("It says {}.")) as other:
        run_id = await _dies_while_it_waits(rig, other.store)
        rig.tool.gate.set()

        await _ends(other.store, run_id)
        assert other.results_sent() == ["{}"]
        assert len(rig.tool.calls) == 1


async def test_a_call_that_was_taken_as_its_agent_died_is_not_sent_again(rig: Rig) -> None:
    rig.tool.gate.clear()
    async with rig.agent(says("It says 42.")) as other:
        run_id = await _dies_while_it_waits(rig, other.store)
        rig.tool.gate.set()

        await other.waits(run_id)
        await rig.tool.answer(rig.tool.calls[0], 42)
        await _ends(other.store, run_id)
        assert other.results_sent() == ["42"]
        assert len(rig.tool.calls) == 1


async def test_a_reply_that_was_lost_with_its_agent_counts_after_the_time_of_its_call(rig: Rig) -> None:
    rig.tool.state = "answered"
    async with rig.agent(says("It says {}.")) as other:
        dying = Crashing(other.store, 2, lands=False)
        async with rig.worker(dying, asks_for(("hurried", {}))) as (engine, service):
            run_id = await begin_run(engine, service)
            await until(lambda: dying.dead)  # it has the reply of the tool, and cannot store it

        await _ends(other.store, run_id)
        assert other.results_sent() == ["{}"]
        assert len(rig.tool.calls) == 1


async def test_the_reply_to_a_call_counts_although_the_tool_is_gone_when_the_run_is_resumed(rig: Rig) -> None:
    rig.tool.gate.clear()
    rig.tool.state = "answered"
    run_id = await _dies_before_its_tool_is_gone(rig, "report")
    async with rig.agent(says("It says {}.")) as other:
        await _is_resumed(other.store, run_id)
        await asyncio.sleep(0.5)  # in which a call that is given up would have ended
        rig.tool.gate.set()

        await _ends(other.store, run_id)
        assert offered(other) == {"danger", "hurried", "ask", *IN_SHOP}
        assert other.results_sent() == ["{}"]
        assert len(rig.tool.calls) == 1


async def test_a_call_without_a_reply_has_an_unknown_outcome_although_the_tool_is_gone(rig: Rig) -> None:
    rig.tool.gate.clear()
    run_id = await _dies_before_its_tool_is_gone(rig, "hurried")
    async with rig.agent(says("I do not know.")) as other:
        await _ends(other.store, run_id)
        rig.tool.gate.set()

        assert offered(other) == {"report", "danger", "ask", *IN_SHOP}
        (result,) = other.results_sent()
        assert json.loads(result)["error"]["reason"] == "outcome_unknown"
        assert "may have run" in result
        assert len(rig.tool.calls) == 1


async def test_a_conversation_that_is_not_stored_waits_for_the_answer_as_for_any_other(rig: Rig) -> None:
    async with rig.agent(REPORT, says("Done.")) as agent:
        request = {"model": "beckon", "messages": [user("go")]}
        asking = asyncio.create_task(agent.http.post("/v1/chat/completions", json=request))
        call = await rig.tool.called()
        assert not asking.done()
        await rig.tool.answer(call, 42)

        assert (await asking).json()["choices"][0]["message"]["content"] == "Done."
        assert agent.results_sent() == ["42"]


async def test_a_call_by_hand_waits_for_the_answer_as_for_any_other(rig: Rig) -> None:
    async with rig.agent() as agent:
        calling = asyncio.create_task(agent.http.post("/tools/report", json={}))
        await rig.tool.answer(await rig.tool.called(), 42)

        assert (await calling).json()["result"] == 42


async def test_a_run_that_waited_is_replayed_as_it_was(rig: Rig) -> None:
    async with rig.agent(REPORT, says("It says 42.")) as agent:
        begun = await agent.post()
        await rig.tool.answer(await rig.tool.called(), 42)
        ended = await agent.until(begun["id"], "completed")

        reported = await agent.http.post(f"/runs/{ended['id']}/replay", json={})

        ((_, report),) = events(reported.text)
        assert (report["same"], report["differences"]) == (True, [])
        assert len(rig.tool.calls) == 1


async def test_a_call_that_is_allowed_is_not_held_up_by_a_tool_that_takes_hours(rig: Rig) -> None:
    async with rig.agent(asks_for(("report", {}), ("danger", {})), says("Both done.")) as agent:
        pending = await agent.post()
        (question,) = [item for item in pending["output"] if item["type"] == "mcp_approval_request"]
        answer = {"type": "mcp_approval_response", "approval_request_id": question["id"], "approve": True}
        going_on = await agent.post([answer], previous_response_id=pending["id"])

        assert going_on["status"] == "in_progress"
        assert [item["status"] for item in going_on["output"]] == ["completed"]
        await rig.tool.answer(rig.tool.call("report"), 42)
        ended = await agent.until(going_on["id"], "completed")
        reported = await agent.http.post(f"/runs/{ended['id']}/replay", json={})

        assert [item["type"] for item in ended["output"]] == ["mcp_call", "mcp_call", "message"]
        assert agent.results_sent() == ["42", "{}"]
        ((_, report),) = events(reported.text)
        assert (report["same"], report["differences"]) == (True, [])


async def test_a_stream_ends_while_its_tool_works_and_can_be_joined_for_the_rest(rig: Rig) -> None:
    async with rig.agent(REPORT, says("It says 42.")) as agent:
        request = {"input": "go", "stream": True, "background": True, "include": ["mcp_call"]}
        streamed = await agent.http.post("/v1/responses", json=request)
        begun = [json.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: {")]
        assert begun[-1]["response"]["status"] == "in_progress"

        url = f"/v1/responses/{begun[-1]['response']['id']}"
        after = {"stream": "true", "starting_after": begun[-1]["sequence_number"]}
        joining = asyncio.create_task(agent.http.get(url, params=after))
        await rig.tool.answer(await rig.tool.called(), 42)

        rest = [
            json.loads(line[6:]) for line in (await joining).text.splitlines() if line.startswith("data: {")
        ]
        assert rest[0]["sequence_number"] == begun[-1]["sequence_number"] + 1
        assert rest[-1]["type"] == "response.completed"
        assert "response.mcp_call.completed" in [event["type"] for event in rest]


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"ce-replyid": "shim-0.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA"}, 403),
        ({"ce-causationid": "run_1.0.0"}, 403),
        ({"ce-causationid": None}, 400),
        ({"ce-replyid": None}, 403),
        ({"ce-specversion": "0.3"}, 400),
    ],
)
async def test_a_reply_that_does_not_prove_itself_changes_nothing(
    rig: Rig, changed: dict[str, str | None], status: int
) -> None:
    async with rig.agent(REPORT) as agent:
        await agent.post()
        call = await rig.tool.called()
        headers = {name: value for name, value in {**reply(call), **changed}.items() if value is not None}

        refused = await agent.http.post("/late-replies", content=b"42", headers=headers)

        assert (refused.status_code, refused.headers["content-type"]) == (status, "application/problem+json")
        found = await agent.store.journal.find_call(call.headers["ce-id"])
        assert found is not None
        assert found[1].state == "accepted"


async def test_the_answer_of_a_deleted_run_is_reported_as_unknown(rig: Rig) -> None:
    async with rig.agent(REPORT) as agent:
        begun = await agent.post()
        call = await rig.tool.called()
        assert (await agent.http.delete(f"/v1/responses/{begun['id']}")).status_code == 200

        gone = await agent.http.post("/late-replies", content=b"42", headers=reply(call))

        assert (gone.status_code, gone.json()["type"]) == (410, "https://beckon.dev/problems/unknown-call")


async def test_a_tool_cannot_answer_for_another_call(rig: Rig) -> None:
    async with rig.agent(asks_for(("report", {}), ("report", {}))) as agent:
        await agent.post()
        await rig.tool.called(2)
        first, second = rig.tool.calls
        headers = {**reply(first), "ce-causationid": second.headers["ce-id"]}

        assert (await agent.http.post("/late-replies", content=b"42", headers=headers)).status_code == 403


async def _dies_while_it_waits(rig: Rig, store: Store, call: Script = REPORT) -> str:
    """Begin a run in another process, which dies when its tool has the call; return the id of the run."""
    dying = Crashing(store, 100, lands=True)
    async with rig.worker(dying, call) as (engine, service):
        run_id = await begin_run(engine, service)
        await rig.tool.called()
        dying.dead = True
    return run_id


async def _dies_before_its_tool_is_gone(rig: Rig, name: str) -> str:
    """Begin a run in another process, which dies when its tool has the call; then delete the EventType."""
    async with AsyncExitStack() as stack:
        store = await open_store(rig.url)
        stack.push_async_callback(store.aclose)
        run_id = await _dies_while_it_waits(rig, store, asks_for((name, {})))
    items = json.loads((rig.folder / "all.json").read_text())["items"]
    left = [one for one in items if one["kind"] != "EventType" or one["metadata"]["name"] != name]
    assert len(left) == len(items) - 1
    write_manifests(rig.folder, *left)
    return run_id


def offered(agent: LongAgent) -> set[str]:
    """Return the names of the tools that the model was offered last."""
    return {tool["function"]["name"] for tool in agent.requests[-1].body["tools"]}


async def _is_resumed(store: Store, run_id: str) -> None:
    """Wait until the run is taken over by an agent."""

    async def is_taken_over() -> bool:
        run = await store.runs.get(run_id)
        return run is not None and bool(run.takeovers)

    await eventually(is_taken_over)


async def _ends(store: Store, run_id: str) -> None:
    async def has_ended() -> bool:
        run = await store.runs.get(run_id)
        return run is not None and run.status == "completed"

    await eventually(has_ended)
