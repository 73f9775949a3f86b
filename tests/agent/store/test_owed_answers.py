"""Owed answers: stored with the end of a run, claimed by one replica at a time, and none without its run."""

import asyncio
from dataclasses import replace

import pytest

from beckon_agent.core.records import Ended
from beckon_agent.store.base import Store
from beckon_agent.store.outgoing import OwedAnswer
from beckon_agent.store.sql.open import open_store
from tests.agent.store.examples import ME, begun

OWED = Ended("completed", "stop", owed=True)


async def end(store: Store, run_id: str, ended: Ended = OWED, **members: bool) -> None:
    await begun(store, run_id, **members)
    await store.runs.end_run(run_id, ME, ended)


async def claimed(store: Store, seconds: float = 60) -> list[OwedAnswer]:
    return list(await store.owed_answers.claim_due(most=10, seconds=seconds))


async def test_an_answer_is_due_from_the_end_of_its_run_until_it_is_claimed(store: Store) -> None:
    await begun(store, "r1")
    before = await claimed(store)
    await store.runs.end_run("r1", ME, OWED)

    due = await claimed(store)

    assert before == []
    assert due == [OwedAnswer("r1", 0)]
    assert await claimed(store) == []


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_a_run_ended_from_outside_may_owe_its_answer_too(store: Store, status: str) -> None:
    await begun(store, "r1")
    await store.runs.end_run("r1", None, replace(OWED, status=status))  # type: ignore[arg-type]  # both are in it

    assert await claimed(store) == [OwedAnswer("r1", 0)]


async def test_neither_a_run_that_owes_nothing_nor_one_that_is_not_retained_is_claimed(store: Store) -> None:
    await end(store, "r1", Ended("completed", "stop"))
    await end(store, "r2", retained=False)
    await end(store, "r3", replace(OWED, lingers=True), retained=False)

    assert await claimed(store) == []


async def test_a_claim_that_nothing_follows_is_due_again(store: Store) -> None:
    await end(store, "r1")

    await claimed(store, seconds=0)

    assert await claimed(store) == [OwedAnswer("r1", 0)]


async def test_an_answer_that_is_put_off_is_due_later_and_has_its_failures_counted(store: Store) -> None:
    await end(store, "r1")
    await claimed(store)
    await store.owed_answers.postpone("r1", seconds=0)
    (again,) = await claimed(store)
    await store.owed_answers.postpone("r1", seconds=60)

    assert again.failures == 1
    assert await claimed(store, seconds=0) == []


async def test_a_settled_answer_and_that_of_a_deleted_run_are_never_due(store: Store) -> None:
    await end(store, "r1")
    await end(store, "r2")
    await store.owed_answers.settle("r1")
    await store.owed_answers.settle("none")
    await store.runs.delete("r2")

    assert await claimed(store) == []


async def test_two_processes_claim_each_answer_once(url: str) -> None:
    stores = [await open_store(url) for _ in range(2)]
    names = [f"r{number}" for number in range(9)]
    for name in names:
        await end(stores[0], name)

    claims = await asyncio.gather(
        *(store.owed_answers.claim_due(most=2, seconds=60) for _ in range(4) for store in stores)
    )
    rest = await claimed(stores[0])

    assert sorted(owed.run_id for claim in (*claims, rest) for owed in claim) == names
    for store in stores:
        await store.aclose()
