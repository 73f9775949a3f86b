"""A stored run is replayed as it was, and what differs today is reported."""

import asyncio
from dataclasses import replace

import pytest

from beckon_agent.agents.registry import AgentHandle, SingleAgent
from beckon_agent.auth.quotas import Quotas as SharedLimits
from beckon_agent.core.run_types import Limits
from beckon_contract.resources.agent_terms import Quota, Terms
from tests.agent.replay.conftest import StartService
from tests.agent.replay.replaying import ended
from tests.agent.running_agent import Setup
from tests.agent.scripted_model import Reply, asks_for, calls, chunk, fragment, says, streamed
from tests.agent.store.raw import execute
from tests.agent.tools_for_tests import BENCH
from tests.patience import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

TWO_CALLS = asks_for(("test_echo", {"text": "a"}), ("test_echo", {"text": "b"}))
COUNTED = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 5}}
DANGER = asks_for(("test_danger", {}), ("test_echo", {"text": "a"}))


async def test_a_run_is_the_same_byte_for_byte_with_neither_model_nor_tools(
    start_service: StartService,
) -> None:
    async with start_service(TWO_CALLS, says("It ", "is ", "done.")) as service:
        run = await service.run()
        called = list(BENCH.calls)
        report = await service.same(run)

    assert BENCH.calls == called
    assert (report["run"], report["status"]) == (run, "completed")
    assert (report["turns"], report["calls"], report["model"]) == (2, 2, "m (native)")
    assert (report["requests_unknown"], report["answers_dropped"]) == (0, 0)


async def test_a_run_is_replayed_from_postgresql_as_from_a_file(start_on_postgres: StartService) -> None:
    async with start_on_postgres(TWO_CALLS, says("Done.")) as service:
        await service.same(await service.run())


async def test_answers_of_calls_come_in_the_order_in_which_they_came_then(
    start_service: StartService,
) -> None:
    naps = asks_for(*[("test_nap", {"milliseconds": ms}) for ms in (60, 1, 30, 2)])
    async with start_service(naps, says("Done.")) as service:
        run = await service.run()
        await service.same(run)

        log = [document for _, document in await service.store.events.read_after(run, 0, most=100)]
        shown = [event["result"] for event in log if event["type"] == "CallFinished"]
        assert shown[-1] == "slept 60"


async def test_calls_as_the_model_wrote_them_are_inspected_again(start_service: StartService) -> None:
    written = streamed(
        calls(fragment(0, "call_0", "test_echo", '{"text": "a", "count": "2"')),
        calls(fragment(1, "call_1", "test_echo", '{"text": "a"}{"text": "b"}')),
        calls(fragment(2, "call_2", "test_echo", "nonsense")),
        calls(fragment(3, "call_3", "test_ecko", "{}")),
        calls(fragment(4, "call_4", "test_fail", '{"kind": "refuse"}')),
        chunk(finish="tool_calls"),
    )
    async with start_service(written, says("Done.")) as service:
        await service.same(await service.run())


async def test_reasoning_usage_and_text_before_a_call_are_played_piece_by_piece(
    start_service: StartService,
) -> None:
    first = streamed(
        chunk({"reasoning_content": "Let me "}),
        chunk({"reasoning_content": "think."}),
        chunk({"content": "I will "}),
        chunk({"content": "look."}),
        calls(fragment(0, "call_0", "test_echo", '{"text": "a"}')),
        chunk(finish="tool_calls", usage=COUNTED),
    )
    async with start_service(first, says("So ", "it is.")) as service:
        run = await service.run()
        report = await service.same(run)

        assert report["events"] == len(await service.store.events.read_after(run, 0, most=100))


async def test_a_run_that_goes_on_from_another_is_replayed_with_what_it_had_found(
    start_service: StartService,
) -> None:
    async with start_service(TWO_CALLS, says("Done."), says("As I said.")) as service:
        first = await service.run("do it")
        second = await service.run("what was it?", previous_response_id=first, instructions="Be brief.")

        await service.same(second)


async def test_a_run_of_a_conversation_is_the_same_after_the_conversation_went_on(
    start_service: StartService,
) -> None:
    async with start_service(says("One."), says("Two."), says("Three.")) as service:
        thread = (await service.http.post("/v1/conversations", json={})).json()["id"]
        runs = [await service.run(text, conversation=thread) for text in ("1", "2", "3")]

        for run in runs:
            await service.same(run)


@pytest.mark.parametrize("approve", [True, False])
async def test_decisions_of_people_are_taken_again(start_service: StartService, approve: bool) -> None:
    async with start_service(DANGER, says("Done.")) as service:
        pending = await service.ask()
        followed = await service.approve(pending, approve=approve, reason="so be it")
        called = list(BENCH.calls)

        await service.same(pending["id"])
        await service.same(followed["id"])  # the second response of the same run

    assert BENCH.calls == called


async def test_a_call_handed_to_the_client_ends_the_replay_as_it_ended_the_run(
    start_service: StartService,
) -> None:
    theirs = {"type": "function", "name": "look_up", "parameters": {"type": "object", "properties": {}}}
    mixed = asks_for(("look_up", {"key": "k"}), ("test_echo", {"text": "a"}))
    async with start_service(mixed, says("It is 7.")) as service:
        first = await service.ask(tools=[theirs])
        (pending,) = [item for item in first["output"] if item["type"] == "function_call"]
        answer = {"type": "function_call_output", "call_id": pending["call_id"], "output": "7"}
        second = await service.run([answer], previous_response_id=first["id"], tools=[theirs])

        await service.same(first["id"])
        await service.same(second)


@pytest.mark.parametrize("limits", [Limits(steps=1), Limits(tokens=5)], ids=["steps", "tokens"])
async def test_a_run_that_reached_a_limit_is_the_same(start_service: StartService, limits: Limits) -> None:
    counted = streamed(
        chunk({"content": "One moment."}),
        calls(fragment(0, "call_0", "test_echo", '{"text": "a"}')),
        chunk(finish="tool_calls", usage=COUNTED),
    )
    async with start_service(counted, setup=Setup(limits)) as service:
        report = await service.same(await service.run())

    assert report["status"] == "incomplete"


async def test_a_run_that_ran_out_of_time_ends_at_the_same_place(start_service: StartService) -> None:
    async with start_service(
        asks_for(("test_wait", {})), says("never"), setup=Setup(Limits(seconds=1.5))
    ) as service:
        report = await service.same(await service.run())

    assert report["status"] == "incomplete"


async def test_a_run_whose_model_failed_fails_in_the_same_words(start_service: StartService) -> None:
    refusal = Reply((b'{"error": {"message": "no such model", "code": "model_not_found"}}',), status=404)
    async with start_service(TWO_CALLS, refusal) as service:
        run = await service.run()
        report = await service.same(run)

    assert report["status"] == "failed"


async def test_a_cancelled_run_is_the_same_as_far_as_it_went(start_service: StartService) -> None:
    script = asks_for(("test_echo", {"text": "a"}), ("test_wait", {}))
    async with start_service(script, says("never")) as service:
        run = await service.run(background=True)
        await eventually(lambda: _is_set(service))
        await service.http.post(f"/v1/responses/{run}/cancel")
        BENCH.gate.set()
        await ended(service, run)
        report = await service.same(run)

    assert (report["status"], report["log_is_whole"]) == ("cancelled", False)


async def _is_set(_: object) -> bool:
    return BENCH.waiting.is_set()


async def test_a_changed_prompt_is_reported_with_the_first_difference(start_service: StartService) -> None:
    async with start_service(TWO_CALLS, says("Done.")) as service:
        run = await service.run()
        service.change(system_prompt="You are another.")
        _, report = await service.replay(run)

    (difference,) = report["differences"]
    assert not report["same"]
    assert difference["where"] == "the model's request 1: messages[0].content"
    assert "-You are a test.\n+You are another." in difference["diff"]


async def test_a_tool_that_is_declared_differently_is_reported(start_service: StartService) -> None:
    async with start_service(TWO_CALLS, says("Done.")) as service:
        run = await service.run()
        service.change_tool("test_echo", description="Shout.")
        _, report = await service.replay(run)

    (difference,) = report["differences"]
    assert difference["where"] == "the model's request 1: tools.test_echo.description"
    assert "+Shout." in difference["diff"]


async def test_a_tool_that_is_gone_is_reported(start_service: StartService) -> None:
    async with start_service(TWO_CALLS, says("Done.")) as service:
        run = await service.run()
        service.remove_tool("test_picture")
        _, report = await service.replay(run)

    assert [found["where"] for found in report["differences"]] == [
        "the model's request 1: tools.test_picture"
    ]


async def test_another_limit_on_results_is_reported_where_the_model_would_see_it(
    start_service: StartService,
) -> None:
    async with start_service(asks_for(("test_echo", {"text": "long" * 50})), says("Done.")) as service:
        run = await service.run()
        service.change(limits=Limits(result_chars=20))
        _, report = await service.replay(run)

    (difference,) = report["differences"]
    assert difference["where"] == "the model's request 2: messages[3].content"
    assert "[cut: " in difference["diff"]


async def test_a_limit_that_ends_the_run_earlier_is_reported_as_another_ending(
    start_service: StartService,
) -> None:
    async with start_service(TWO_CALLS, says("Done.")) as service:
        run = await service.run()
        service.change(limits=Limits(steps=1))
        _, report = await service.replay(run)

    places = [found["where"] for found in report["differences"]]
    assert places[0].startswith("events[")
    assert "run.status" in places


async def test_what_is_stored_differently_is_reported(start_service: StartService, database_url: str) -> None:
    async with start_service(says("Done.")) as service:
        run = await service.run()
        more = """'{"type":"TextDelta","text":"!"}'"""
        await execute(database_url, f"INSERT INTO events (run_id, number, event) VALUES ('{run}', 4, {more})")
        _, report = await service.replay(run)

    assert [found["where"] for found in report["differences"]] == ["events[3]"]
    assert "TextDelta" in report["differences"][0]["diff"]


async def test_a_run_that_has_not_ended_cannot_be_replayed(start_service: StartService) -> None:
    async with start_service(DANGER) as service:
        waiting = await service.ask()
        answer = await service.post(waiting["id"])

    assert answer.status_code == 409
    assert answer.json()["type"].endswith("/not-ended")
    assert "suspended" in answer.json()["detail"]


@pytest.mark.parametrize("run", ["resp_0", "..%2f", "event_x", "%00"])
async def test_a_run_that_there_is_not_is_unknown(start_service: StartService, run: str) -> None:
    async with start_service() as service:
        assert (await service.post(run)).status_code == 404


async def test_a_run_of_another_owner_is_unknown(start_service: StartService) -> None:
    async with start_service(says("Mine.")) as service:
        run = await service.run()
        answer = await service.post(run, owner="key:eve")

    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("application/problem+json")


async def test_a_replay_is_requested_with_json(start_service: StartService) -> None:
    async with start_service(says("Done.")) as service:
        run = await service.run()
        form = await service.http.post(f"/runs/{run}/replay", data={"live_tools": "true"})
        empty = await service.http.post(f"/runs/{run}/replay")
        unknown = await service.post(run, live=True)

    assert [answer.status_code for answer in (form, empty, unknown)] == [400, 400, 400]


async def test_a_replay_is_a_request_that_has_to_be_let_in(start_service: StartService) -> None:
    async with start_service(says("Done.")) as service:
        run = await service.run()
        terms = Terms(quotas=(Quota("requests", "user", 1, 3600),))
        service.change(terms=terms)
        service.agent.service.limits = SharedLimits(service.store.counters)
        answers = [await service.post(run) for _ in range(2)]
        service.agent.service.draining = True
        later = await service.post(run)

    assert [answer.status_code for answer in answers] == [200, 429]
    assert int(answers[1].headers["retry-after"]) > 0
    assert later.status_code == 503


async def test_a_run_of_an_agent_that_is_gone_cannot_be_replayed(start_service: StartService) -> None:
    async with start_service(says("Done.")) as service:
        run = await service.run()
        found = service.agent.service.registry.find("beckon")
        assert isinstance(found, AgentHandle)
        service.agent.service.registry = SingleAgent(replace(found, name="other"), asyncio.Event().wait)
        answer = await service.post(run)

    assert answer.status_code == 409
    assert "'beckon'" in answer.json()["detail"]
