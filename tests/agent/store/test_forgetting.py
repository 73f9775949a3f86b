"""Nothing of a conversation stays that no one can read any more."""

import asyncio

from beckon_agent.core.records import Ended, StoredConversation
from beckon_agent.store.base import Store
from tests.agent.store.examples import ME, answered, begun, ended, said
from tests.agent.store.raw import count, execute

THREAD = StoredConversation(id="c1", owner="ann", metadata={}, created_at=1.0)


async def test_a_chain_goes_with_the_last_run_that_needs_it(store: Store, url: str) -> None:
    await ended(store, "r1")
    await ended(store, "r2", previous="r1")
    await ended(store, "left", previous="r2")
    await ended(store, "right", previous="r2")

    for run_id in ("r2", "r1", "left"):
        await store.runs.delete(run_id)
    assert await count(url, "segments") == 3
    await store.runs.delete("right")

    assert await count(url, "segments") == 0


async def test_deletions_side_by_side_leave_nothing(store: Store, url: str) -> None:
    await ended(store, "root")
    for number in range(12):
        await ended(store, f"r{number}", previous="root")
        await ended(store, f"s{number}", previous=f"r{number}")

    names = ["root", *(f"{kind}{number}" for number in range(12) for kind in "rs")]
    assert all(await asyncio.gather(*map(store.runs.delete, names)))

    assert await count(url, "segments") == 0


async def test_a_run_that_is_not_stored_leaves_nothing(store: Store, url: str) -> None:
    await begun(store, "r1", retained=False)
    await store.runs.end_run("r1", ME, Ended("completed", added=[answered("yes")]))

    assert await count(url, "segments") == 0


async def test_a_run_that_lingers_goes_with_a_purge_a_minute_after_its_end(store: Store, url: str) -> None:
    await begun(store, "r1", retained=False)
    await begun(store, "r2", retained=False)
    await store.runs.end_run("r1", ME, Ended("completed", added=[answered("yes")], lingers=True))
    await store.runs.end_run("r2", ME, Ended("completed", added=[answered("yes")], lingers=True))
    await execute(url, "UPDATE runs SET ended_at = ended_at - 61 WHERE id = 'r1'")

    assert await store.runs.purge(None) == 1

    assert await store.runs.get("r1") is None
    assert await store.runs.get("r2") is not None


async def test_a_closed_conversation_leaves_what_its_runs_need(store: Store, url: str) -> None:
    await store.conversations.open(THREAD, [said("hello")])
    await ended(store, "r1", conversation="c1")
    await begun(store, "r2", conversation="c1")
    await ended(store, "r3", conversation="c1")
    await store.runs.end_run("r2", ME, Ended("completed", added=[]))
    assert await count(url, "segments") == 5

    await store.conversations.close("c1")
    assert await count(url, "segments") == 4
    for run_id in ("r1", "r2", "r3"):
        await store.runs.delete(run_id)

    assert await count(url, "segments") == 0


async def test_a_purge_takes_whole_chains(store: Store, url: str) -> None:
    for number in range(250):
        await ended(store, f"r{number}", previous=f"r{number - 1}" if number % 50 else None)

    assert await store.runs.purge(-1) == 250

    assert await count(url, "segments") == 0
    assert await count(url, "runs") == 0
