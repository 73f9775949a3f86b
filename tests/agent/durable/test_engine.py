"""Stored runs: followed at any process, resumed by any process, each event published once."""

from dataclasses import replace

import pytest

from beckon_agent.core.run_events import (
    ApprovalRequested,
    CallFinished,
    ClientCallRequested,
    RunFailed,
    RunFinished,
    RunSuspended,
)
from beckon_agent.core.run_types import ClientTool
from tests.agent.durable.conftest import StartEngines
from tests.agent.durable.crashing import Crashing
from tests.agent.durable.engines import everything, text
from tests.agent.scripted_model import Reply, asks_for, says
from tests.agent.tools_for_tests import BENCH
from tests.patience import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

TWO_CALLS = asks_for(("test_echo", {"text": "a"}), ("test_echo", {"text": "b"}))


async def test_a_run_is_stored_and_can_be_followed_from_anywhere(engines: StartEngines) -> None:
    async with engines(TWO_CALLS, says("It ", "is done.")) as shared:
        async with shared.running() as engine, shared.running() as other:
            run = await engine.start(shared.ask())
            here, there = await everything(engine, run.id), await everything(other, run.id)
            again = await everything(engine, run.id)

        stored = await shared.store.runs.get(run.id)
        assert text(here) == "It is done."
        assert here == there == again
        assert isinstance(here[-1], RunFinished)
        assert stored is not None
        assert (stored.status, stored.ending) == ("completed", "stop")


async def test_a_run_goes_on_from_the_one_before(engines: StartEngines) -> None:
    async with engines(TWO_CALLS, says("Done."), says("As I said.")) as shared, shared.running() as engine:
        first = await engine.start(shared.ask("do it"))
        await everything(engine, first.id)
        second = await engine.start(shared.ask("what was it?", previous=first.id))
        await everything(engine, second.id)

        roles = [message["role"] for message in shared.agent.requests[2].body["messages"]]
        assert roles == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]


# Notes of such a run: the first turn, two calls sent, two answers, the second turn, the end.
@pytest.mark.parametrize("lands", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("notes", range(7))
async def test_a_process_that_dies_at_any_step_is_replaced(
    engines: StartEngines, notes: int, lands: bool
) -> None:
    # An answer that is not noted yet is asked for again.
    script = (
        [TWO_CALLS, says("Done."), says("Done.")] if notes or lands else [TWO_CALLS, TWO_CALLS, says("Done.")]
    )
    async with engines(*script) as shared:
        dying = Crashing(shared.store, notes, lands=lands)
        async with shared.running(dying) as first:
            run = await first.start(shared.ask())
            await eventually(lambda: _is(dying.dead))
        async with shared.running() as second:
            events = await everything(second, run.id)

        stored = await shared.store.runs.get(run.id)
        assert stored is not None
        assert stored.status == "completed"
        assert text(events).endswith("Done.")
        assert isinstance(events[-1], RunFinished)
        # The tools know a repeated call by its id, and a call is never another one after a restart.
        assert sorted(BENCH.calls) == ["a", "b"]
        assert sum(isinstance(event, CallFinished) for event in events) == 2


async def _is(value: bool) -> bool:
    return value


async def test_an_approval_suspends_the_run_and_the_decision_resumes_it_anywhere(
    engines: StartEngines,
) -> None:
    mixed = asks_for(("test_danger", {}), ("test_echo", {"text": "a"}))
    async with engines(mixed, says("Both done.")) as shared:
        async with shared.running() as engine:
            run = await engine.start(shared.ask())
            events = await everything(engine, run.id)
        (request,) = [event for event in events if isinstance(event, ApprovalRequested)]
        assert isinstance(events[-1], RunSuspended)
        assert BENCH.calls == ["a"]

        async with shared.running() as another:
            assert await another.decide_call(request.event_id, "approved", by="ann")
            assert not await another.decide_call(request.event_id, "denied", by="bob")
            events = await everything(another, run.id, wait=True)

        assert text(events) == "Both done."
        assert BENCH.calls == ["a", "danger"]


async def test_a_call_that_is_not_allowed_is_shown_to_the_model(engines: StartEngines) -> None:
    async with engines(asks_for(("test_danger", {})), says("As you wish.")) as shared:
        async with shared.running() as engine:
            run = await engine.start(shared.ask())
            (request,) = [e for e in await everything(engine, run.id) if isinstance(e, ApprovalRequested)]
            await engine.decide_call(request.event_id, "denied", by="ann", reason="too dear")
            await everything(engine, run.id, wait=True)

        (shown,) = [m["content"] for m in shared.agent.requests[1].body["messages"] if m["role"] == "tool"]
        assert "too dear" in shown
        assert BENCH.calls == []


async def test_a_run_in_the_foreground_ends_with_its_last_follower(engines: StartEngines) -> None:
    async with engines(asks_for(("test_wait", {})), says("never")) as shared, shared.running() as engine:
        run = await engine.start(shared.ask(background=False))
        events = engine.follow(run.id)
        await anext(events)
        await events.aclose()

        stored = await engine.get(run.id)
        assert stored is not None
        assert stored.status == "cancelled"


async def test_a_cancelled_run_stops_and_stays_cancelled(engines: StartEngines) -> None:
    async with engines(asks_for(("test_wait", {})), says("never")) as shared, shared.running() as engine:
        run = await engine.start(shared.ask())
        await eventually(lambda: _is(BENCH.waiting.is_set()))

        cancelled = await engine.cancel(run.id)
        BENCH.gate.set()
        events = await everything(engine, run.id)

        assert cancelled is not None
        assert cancelled.status == "cancelled"
        assert not any(isinstance(event, RunFinished) for event in events)
        assert len(shared.agent.requests) == 1


async def test_a_model_that_fails_ends_the_run_with_its_words(engines: StartEngines) -> None:
    refusal = Reply((b'{"error": {"message": "no such model", "code": "model_not_found"}}',), status=404)
    async with engines(refusal) as shared, shared.running() as engine:
        run = await engine.start(shared.ask())
        events = await everything(engine, run.id)

        stored = await engine.get(run.id)
        assert isinstance(events[-1], RunFailed)
        assert "no such model" in events[-1].message
        assert stored is not None
        assert stored.status == "failed"
        assert stored.error == {"code": events[-1].code, "message": events[-1].message}


@pytest.mark.parametrize("lands", [False, True], ids=["before", "after"])
async def test_a_run_that_failed_as_its_process_died_has_failed_everywhere(
    engines: StartEngines, lands: bool
) -> None:
    refusal = Reply((b'{"error": {"message": "no such model", "code": "model_not_found"}}',), status=404)
    async with engines(refusal) as shared:
        dying = Crashing(shared.store, 0, lands=lands)  # its first note is the end
        async with shared.running(dying) as first:
            run = await first.start(shared.ask())
            await eventually(lambda: _is(dying.dead))
        async with shared.running() as second:
            events = await everything(second, run.id)

            stored = await second.get(run.id)
            assert stored is not None
            assert stored.status == "failed"
            assert [type(event) for event in events] == [RunFailed]


async def test_a_deleted_run_is_gone(engines: StartEngines) -> None:
    async with engines(says("Hello.")) as shared, shared.running() as engine:
        run = await engine.start(shared.ask())
        await everything(engine, run.id)

        assert await engine.delete(run.id)
        assert await engine.get(run.id) is None
        assert await everything(engine, run.id) == []
        assert not await engine.delete(run.id)


async def test_a_tool_of_the_clients_is_handed_back_and_answered_in_the_next_run(
    engines: StartEngines,
) -> None:
    mixed = asks_for(("look_up", {"key": "k"}), ("test_echo", {"text": "a"}))
    theirs = ClientTool("look_up", "Look something up.", {"type": "object", "properties": {}})
    async with engines(mixed, says("It is 7.")) as shared, shared.running() as engine:
        run = await engine.start(replace(shared.ask(), client_tools=[theirs]))
        events = await everything(engine, run.id)
        (request,) = [event for event in events if isinstance(event, ClientCallRequested)]
        answer = {"role": "tool", "tool_call_id": request.id, "content": "7"}
        following = shared.ask(previous=run.id)
        following = replace(following, run=replace(following.run, input=[answer]))
        second = await engine.start(following)
        said = text(await everything(engine, second.id))

        assert (request.name, request.arguments) == ("look_up", '{"key":"k"}')
        assert isinstance(events[-1], RunFinished)
        assert events[-1].ending == "client_call"
        stored = await engine.get(run.id)
        assert stored is not None
        assert (stored.status, stored.ending) == ("completed", "client_call")
        assert said == "It is 7."
        results = [m["content"] for m in shared.agent.requests[1].body["messages"] if m["role"] == "tool"]
        assert sorted(results) == ["7", "a"]
