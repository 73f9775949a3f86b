"""Runs taken over by another process: none is stuck, none ends for a reason that is not its own."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from beckon_agent.agents.registry import AgentHandle, SingleAgent
from beckon_agent.core.records import Ended, LogEntries, NewRun
from beckon_agent.core.run_events import ApprovalRequested, CallFinished, RunEvent, RunFinished, TextDelta
from beckon_agent.core.run_types import Limits
from beckon_agent.durable.base import event_to_document
from beckon_agent.durable.engine import EnginePace
from beckon_agent.store.base import Store
from tests.agent.durable.conftest import StartEngines
from tests.agent.durable.crashing import Crashing
from tests.agent.durable.engines import everything, text
from tests.agent.durable.weak_stores import Hiccup, QuickPerson, SlowLog, SlowReader
from tests.agent.running_agent import Setup, user
from tests.agent.scripted_model import asks_for, chunk, says, streamed
from tests.agent.store.raw import execute
from tests.agent.tools_for_tests import BENCH
from tests.patience import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

ONE_CALL = asks_for(("test_echo", {"text": "a"}))
PATIENCE = 10


@pytest.mark.parametrize("lands", [False, True], ids=["lost", "stored"])
@pytest.mark.parametrize(
    "method", ["add_turn", "mark_sent", "finish_call", "append", "end_run", "claim_runs"]
)
async def test_a_run_goes_on_once_the_store_answers_again(
    engines: StartEngines, method: str, lands: bool
) -> None:
    async with engines(ONE_CALL, says("Done."), says("Done.")) as shared:
        if method == "add_turn" and not lands:
            shared.agent.model.script.insert(0, ONE_CALL)
        weak = Hiccup(shared.store, method, lands=lands)
        async with shared.running(weak) as engine, asyncio.timeout(PATIENCE):
            run = (
                await shared.store.runs.create(shared.ask().run, holder=None, seconds=0)
                if method == "claim_runs"
                else await engine.start(shared.ask())
            )
            events = await everything(engine, run.id)

        stored = await shared.store.runs.get(run.id)
        assert weak.failed
        assert stored is not None
        assert stored.status == "completed"
        assert isinstance(events[-1], RunFinished)
        assert BENCH.calls == ["a"]


async def test_a_run_of_which_no_one_knows_whether_it_was_stored_is_worked_on(engines: StartEngines) -> None:
    async with engines(says("Done.")) as shared:
        weak = Hiccup(shared.store, "create", lands=True)
        async with shared.running(weak) as engine, asyncio.timeout(PATIENCE):
            ask = shared.ask()
            with pytest.raises(Exception, match="does not answer"):
                await engine.start(ask)
            events = await everything(engine, ask.run.id)

        assert text(events) == "Done."


class Waking(SingleAgent):
    """A registry that does not know its agent before it was looked at some times."""

    looks = 0

    @property
    def complete(self) -> bool:  # type: ignore[override]  # a constant there
        """Whether the agent is known."""
        self.looks += 1
        return self.looks > 5

    def find(self, name: str) -> AgentHandle | None:
        """Return the agent once it is known."""
        return super().find(name) if self.looks > 5 else None


async def test_a_run_waits_until_the_agents_are_known(engines: StartEngines) -> None:
    async with engines(says("Done.")) as shared:
        ask = shared.ask()
        shared.agent.service.registry = Waking(ask.hosted, asyncio.Event().wait)
        run = await shared.store.runs.create(ask.run, holder="dead", seconds=-1)
        async with shared.running() as engine, asyncio.timeout(PATIENCE):
            events = await everything(engine, run.id)

        assert text(events) == "Done."


async def test_a_run_that_cannot_be_read_fails_and_the_others_go_on(engines: StartEngines) -> None:
    async with engines(says("Done.")) as shared:
        odd = NewRun(
            id="run_odd",
            owner="",
            agent="beckon",
            face="test",
            input=[user("go")],
            request={"options": {"temperature": "warm"}},
        )
        await shared.store.runs.create(odd, holder=None, seconds=0)
        run = await shared.store.runs.create(shared.ask().run, holder=None, seconds=0)
        async with shared.running() as engine, asyncio.timeout(PATIENCE):
            events = await everything(engine, run.id)
            stored = await engine.get("run_odd")

        assert text(events) == "Done."
        assert stored is not None
        assert stored.status == "failed"


async def test_a_run_that_ends_every_process_is_given_up(engines: StartEngines) -> None:
    async with engines(says("Done.")) as shared:
        ask = shared.ask()
        await shared.store.runs.create(ask.run, holder="dead", seconds=-1)
        for _ in range(4):
            await shared.store.runs.claim_runs("dead, too", seconds=-1, most=1)
        async with shared.running() as engine, asyncio.timeout(PATIENCE):
            await everything(engine, ask.run.id)
            stored = await engine.get(ask.run.id)

        assert stored is not None
        assert stored.status == "failed"
        assert stored.error is not None
        assert stored.error["code"] == "agent_lost"
        assert shared.agent.model.requests == []


async def test_a_takeover_gives_a_run_no_more_time(engines: StartEngines, tmp_path: Path) -> None:
    limits = Limits(seconds=30)
    async with engines(says("Done."), setup=Setup(limits=limits)) as shared:
        ask = shared.ask()
        await shared.store.runs.create(ask.run, holder="dead", seconds=-1)
        await execute(f"sqlite:///{tmp_path / 'store.db'}", "UPDATE runs SET since = since - 31")
        async with shared.running() as engine, asyncio.timeout(PATIENCE):
            events = await everything(engine, ask.run.id)

        assert isinstance(events[-1], RunFinished)
        assert events[-1].ending == "time_limit"
        assert shared.agent.model.requests == []


@pytest.mark.parametrize("deleted", [False, True], ids=["ended", "deleted"])
async def test_who_reads_the_log_while_a_run_ends_elsewhere_gets_its_end(
    engines: StartEngines, deleted: bool
) -> None:
    async with engines() as shared:
        run = await shared.store.runs.create(shared.ask().run, holder="elsewhere", seconds=60)
        slow = SlowReader(shared.store)
        async with shared.running(slow) as engine, asyncio.timeout(PATIENCE):
            following = asyncio.create_task(everything(engine, run.id))
            await slow.read.wait()
            last = RunFinished("stop", None, ())
            said = LogEntries(1, [event_to_document(TextDelta("Done.")), event_to_document(last)])
            await shared.store.runs.end_run(run.id, "elsewhere", Ended("completed"), said)
            if deleted:
                await shared.store.runs.delete(run.id)
            slow.through.set()
            events = await following

        assert events == ([] if deleted else [TextDelta("Done."), last])


async def test_a_process_that_dies_at_a_limit_says_so_once(engines: StartEngines) -> None:
    async with engines(ONE_CALL, setup=Setup(limits=Limits(steps=1))) as shared:
        dying = Crashing(shared.store, 2, lands=False)  # the turn, the refused call, and then the end
        async with shared.running(dying) as first:
            run = await first.start(shared.ask())
            await eventually(lambda: asyncio.sleep(0, dying.dead))
        async with shared.running() as second:
            events = await everything(second, run.id)

        stored = await shared.store.runs.get(run.id)
        assert stored is not None
        assert (stored.status, stored.ending) == ("incomplete", "step_limit")
        assert text(events).count("[stopped") == 1
        assert isinstance(events[-1], RunFinished)


async def test_the_log_is_written_piece_by_piece_and_before_the_turn(engines: StartEngines) -> None:
    async with engines() as shared:
        slow = SlowLog(shared.store)
        said = [chunk({"content": "It "}), chunk({"content": "is "}), chunk({"content": "done."}, "stop")]
        words = streamed(*said, done=False)
        shared.agent.model.add(replace(words, holds=slow.begun))
        async with shared.running(slow) as engine:
            run = await engine.start(shared.ask())
            await slow.begun.wait()
            # Long enough for all that does not wait for the first piece.
            asyncio.get_running_loop().call_later(0.2, slow.through.set)
            events = await everything(engine, run.id)

        # The first piece comes first, and then the turn with the rest of what was said in it.
        noted = [name for name in slow.stored if name in ("append", "add_turn")]
        assert text(events) == "It is done."
        assert noted[:2] == ["append", "add_turn"]
        assert slow.numbers[0] == 1 < slow.numbers[1]
        assert slow.numbers == sorted(slow.numbers)


async def test_a_stream_in_the_background_shows_nothing_that_could_be_lost(engines: StartEngines) -> None:
    async with engines(says("Done.")) as shared:
        slow = SlowLog(shared.store)
        async with shared.running(slow) as engine:
            run = await engine.start(shared.ask())
            events = engine.follow(run.id)
            first = asyncio.create_task(anext(events))
            await slow.begun.wait()
            assert not first.done()
            slow.through.set()
            await first
            await events.aclose()


# Notes of such a run: its turn, the free call sent and answered, the wait; then the allowed call sent
# and answered, the second turn, the end.
@pytest.mark.parametrize("lands", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("notes", range(8))
async def test_a_run_that_waits_for_a_person_outlives_its_process(
    engines: StartEngines, notes: int, lands: bool
) -> None:
    mixed = asks_for(("test_danger", {}), ("test_echo", {"text": "a"}))
    async with engines(*[mixed] * (1 if notes or lands else 2), says("Done."), says("Done.")) as shared:
        dying = Crashing(shared.store, notes, lands=lands)
        async with shared.running(dying) as first, asyncio.timeout(PATIENCE):
            run = await first.start(shared.ask())
            if notes > 3 and await suspends_before_death(dying, run.id):
                await first.decide_call(f"{run.id}.0.0", "approved", by="ann")
            await eventually(lambda: asyncio.sleep(0, dying.dead))
        async with shared.running() as second, asyncio.timeout(PATIENCE):
            events: list[RunEvent] = []
            async for _, event in second.follow(run.id, wait=True):
                events.append(event)
                if isinstance(event, ApprovalRequested):
                    await second.decide_call(event.event_id, "approved", by="ann")

        assert await is_now(shared.store, run.id, "completed")
        assert isinstance(events[-1], RunFinished)
        assert text(events).endswith("Done.")
        assert sum(isinstance(event, ApprovalRequested) for event in events) == 1
        assert sum(isinstance(event, CallFinished) for event in events) == 2
        assert sorted(BENCH.calls) == ["a", "danger"]


async def test_a_run_approved_while_its_worker_ends_goes_on_at_once(engines: StartEngines) -> None:
    long_lease = EnginePace(hold=10 * PATIENCE, beat=0.1, look=0.05)
    async with engines(asks_for(("test_danger", {})), says("Done.")) as shared:
        quick = QuickPerson(shared.store)
        async with shared.running(quick, long_lease) as engine, asyncio.timeout(PATIENCE):
            run = await engine.start(shared.ask())
            events = await everything(engine, run.id, wait=True)

    assert text(events) == "Done."
    assert BENCH.calls == ["danger"]


async def suspends_before_death(dying: Crashing, run_id: str) -> bool:
    """Wait for a suspended run or a dead process; return False for the latter.

    On a busy machine the lease may end before the run waits. The process then takes its own run again, with
    more writes than the test counts.
    """
    await eventually(lambda: is_suspended_or_dead(dying, run_id))
    return not dying.dead


async def is_suspended_or_dead(dying: Crashing, run_id: str) -> bool:
    return dying.dead or await is_now(dying, run_id, "suspended")


async def is_now(store: Store, run_id: str, status: str) -> bool:
    stored = await store.runs.get(run_id)
    return stored is not None and stored.status == status


async def test_a_run_that_another_process_takes_over_goes_on_counting(engines: StartEngines) -> None:
    limits = Limits(call_timeout=10, repeated_calls=2)
    script = [ONE_CALL] * 4
    async with engines(*script, says("Done."), setup=Setup(limits=limits)) as shared:
        # Each turn that is made stores itself, that the call is sent, and its result.
        dying = Crashing(shared.store, 6, lands=True)
        async with shared.running(dying) as first:
            run = await first.start(shared.ask())
            await eventually(lambda: asyncio.sleep(0, dying.dead))
        async with shared.running() as second, asyncio.timeout(PATIENCE):
            events = await everything(second, run.id)

    finished = [event for event in events if isinstance(event, CallFinished)]
    assert BENCH.calls == ["a"] * 2
    assert "denied" in str(finished[-1].result)
    assert text(events) == "Done."
