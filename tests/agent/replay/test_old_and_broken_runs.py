"""Runs that processes died in, and runs of a Beckon that kept less."""

import asyncio
from typing import Any

import pytest

from tests.agent.durable.crashing import Crashing
from tests.agent.durable.engines import Engines, everything
from tests.agent.replay.conftest import StartService
from tests.agent.replay.replaying import Replaying, ended
from tests.agent.scripted_model import Reply, asks_for, chunk, refuses, says, sse
from tests.agent.store.raw import execute
from tests.agent.tools_for_tests import BENCH
from tests.patience import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

TWO_CALLS = asks_for(("test_echo", {"text": "a"}), ("test_echo", {"text": "b"}))


# Notes of such a run: the first turn, two calls sent, two answers, the second turn, the end.
@pytest.mark.parametrize("lands", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("notes", range(7))
async def test_a_run_that_two_processes_worked_on_is_replayed_as_one(
    start_service: StartService, notes: int, lands: bool
) -> None:
    again = [] if notes or lands else [TWO_CALLS]
    async with start_service(*again, TWO_CALLS, says("It ", "is ", "done."), says("Done.")) as service:
        dying = Crashing(service.store, notes, lands=lands)
        engines = Engines(service.agent, service.store)
        ask = engines.ask()
        async with engines.running(dying) as first:
            run = await first.start(ask)
            # Not until it is dead: where this machine stalls, the other takes the run over from a living one.
            await everything(service.engine, run.id, wait=True)

        await _same_for(service, run.id, "ann")


async def _same_for(service: Replaying, run: str, owner: str) -> None:
    answer = await service.post(run, owner=owner)

    assert '"same": true' in answer.text, answer.text


async def test_an_answer_that_was_begun_in_vain_is_left_out_and_counted(start_service: StartService) -> None:
    held = asyncio.Event()
    begun = [sse(chunk({"content": word}), done=False) for word in ("It ", "was ", "said ")]
    half = Reply((*begun, sse(chunk(finish="stop"))), holds=held)
    async with start_service(half, says("It ", "is ", "done.")) as service:
        dying = Crashing(service.store, 99, lands=False)
        engines = Engines(service.agent, service.store)
        async with engines.running(dying) as first:
            run = await first.start(engines.ask())

            async def has_begun() -> bool:
                return bool(await service.store.events.read_after(run.id, 0, most=1))

            await eventually(has_begun)
            dying.dead = True
        held.set()
        await everything(service.engine, run.id, wait=True)
        answer = await service.post(run.id, owner="ann")

    assert '"same": true' in answer.text, answer.text
    assert '"answers_dropped": 1' in answer.text


async def test_a_run_of_an_older_version_is_replayed_without_what_was_not_stored(
    start_service: StartService, database_url: str
) -> None:
    async with start_service(TWO_CALLS, says("Done.")) as service:
        run = await service.run()
        await execute(database_url, "UPDATE turns SET written = NULL, prompt = NULL")
        service.change(system_prompt="You are another.")
        report = await service.same(run)

    assert report["requests_unknown"] == 2
    assert report["model"] is None
    assert BENCH.calls == ["a", "b"]


async def test_what_cannot_be_read_any_more_is_refused(
    start_service: StartService, database_url: str
) -> None:
    async with start_service(says("Done.")) as service:
        run = await service.run()
        await execute(database_url, """UPDATE events SET event = '{"type":"Unknown"}' WHERE number = 1""")
        answer = await service.post(run)

    assert answer.status_code == 409
    assert "another version" in answer.json()["detail"]


async def test_a_log_that_breaks_off_anywhere_is_compared_as_far_as_it_goes(
    start_service: StartService, database_url: str
) -> None:
    mixed = asks_for(("test_echo", {"text": "a"}), ("test_ecko", {}), ("test_nap", {"milliseconds": 9}))
    words = [sse(chunk({"content": word}), done=False) for word in ("Let ", "me ", "see.")]
    plain, refusal = Reply((*words, *mixed.pieces)), refuses(400, "no more of this")
    async with start_service(plain, mixed, refusal) as service:
        run = await service.run(background=True)
        await ended(service, run)

        async def is_shown() -> bool:
            return bool((await _log(service, run))[-1]["type"] == "RunFailed")

        await eventually(is_shown)
        for number in reversed(range(len(await _log(service, run)))):
            await service.same(run)
            await execute(database_url, f"DELETE FROM events WHERE number > {number}")


async def _log(service: Replaying, run: str) -> list[Any]:
    return [document for _, document in await service.store.events.read_after(run, 0, most=500)]
