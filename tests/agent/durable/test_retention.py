"""What is kept, for how long, and what goes on when the store is away."""

import asyncio
import logging
from dataclasses import replace

import pytest

from beckon_agent.core.run_events import ApprovalRequested, RunFinished
from beckon_agent.durable.event_log import Housekeeping
from tests.agent.durable.conftest import StartEngines
from tests.agent.durable.crashing import Crashing
from tests.agent.durable.engines import everything
from tests.agent.scripted_model import asks_for, says
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

DANGER = asks_for(("test_danger", {}))


async def test_ended_runs_are_deleted_when_their_time_is_over(engines: StartEngines) -> None:
    async with engines(says("Hello."), says("Hello."), DANGER) as shared, shared.running() as engine:
        for _ in range(2):
            await everything(engine, (await engine.start(shared.ask())).id)
        waiting = await engine.start(shared.ask())
        await everything(engine, waiting.id)

        assert await Housekeeping(shared.store, 3600).purge_runs() == 0
        assert await Housekeeping(shared.store, None).purge_runs() == 0
        assert await Housekeeping(shared.store, -1).purge_runs() == 2
        assert await engine.get(waiting.id) is not None


async def test_the_end_of_a_run_that_is_not_stored_is_received_at_the_replica_that_began_it(
    engines: StartEngines,
) -> None:
    async with engines(DANGER, says("Done.")) as shared:
        ask = shared.ask()
        ask = replace(ask, run=replace(ask.run, retained=False))
        async with shared.running() as first:
            run = await first.start(ask)
            (request,) = [e for e in await everything(first, run.id) if isinstance(e, ApprovalRequested)]
        async with shared.running() as second:
            follower = asyncio.create_task(everything(first, run.id, wait=True))
            await second.decide_call(request.event_id, "approved", by="ann")

            events = await asyncio.wait_for(follower, PATIENCE)
            assert isinstance(events[-1], RunFinished)

            async def is_forgotten() -> bool:
                return await shared.store.runs.get(run.id) is None

            await eventually(is_forgotten)


async def test_a_process_ends_also_while_the_store_is_away(
    engines: StartEngines, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with engines(DANGER) as shared:
        dying = Crashing(shared.store, 100, lands=True)
        async with shared.running(dying) as engine:
            run = await engine.start(shared.ask())
            await everything(engine, run.id)
            dying.dead = True

        assert "taken over late" in caplog.text
