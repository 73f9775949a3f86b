"""Push targets: one claim at a time, also with two processes, and none without its run."""

import asyncio
from dataclasses import replace

from beckon_agent.store.base import Store
from beckon_agent.store.outgoing import MOST_TARGETS, PushTarget
from beckon_agent.store.sql.open import open_store
from tests.agent.store.examples import begun

TARGET = PushTarget("a", "https://example.com/hook", "token", "Bearer", "secret")


async def test_a_target_is_due_until_it_is_claimed(store: Store) -> None:
    await begun(store, "r1")
    assert await store.push.put("r1", TARGET)

    (due,) = await store.push.claim_due(most=10, seconds=60)
    again = await store.push.claim_due(most=10, seconds=60)

    assert (due.run_id, due.target, due.notified, due.failures) == ("r1", TARGET, "", 0)
    assert list(again) == []
    assert "secret" not in repr(due)
    assert "token" not in repr(due).replace("token=", "")


async def test_a_claim_that_nothing_follows_is_due_again(store: Store) -> None:
    await begun(store, "r1")
    await store.push.put("r1", TARGET)

    await store.push.claim_due(most=10, seconds=0)
    (due,) = await store.push.claim_due(most=10, seconds=60)

    assert due.target == TARGET


async def test_what_was_sent_is_remembered_and_a_last_notification_ends_it(store: Store) -> None:
    await begun(store, "r1")
    await store.push.put("r1", TARGET)
    (due,) = await store.push.claim_due(most=10, seconds=60)
    await store.push.note_sent(replace(due, notified="input", failures=3), seconds=0)
    (next_due,) = await store.push.claim_due(most=10, seconds=60)
    await store.push.note_sent(replace(next_due, notified="completed"), seconds=None)

    assert (next_due.notified, next_due.failures) == ("input", 3)
    assert list(await store.push.claim_due(most=10, seconds=60)) == []
    assert list(await store.push.list_of("r1")) == [TARGET]


async def test_a_replaced_target_is_due_at_once_whatever_the_old_one_was_sent(store: Store) -> None:
    await begun(store, "r1")
    await store.push.put("r1", TARGET)
    (old,) = await store.push.claim_due(most=10, seconds=60)
    other = replace(TARGET, url="https://example.com/other")
    await store.push.put("r1", other)
    await store.push.note_sent(replace(old, notified="completed"), seconds=None)

    (due,) = await store.push.claim_due(most=10, seconds=60)

    assert (due.target, due.notified) == (other, "")
    assert list(await store.push.list_of("r1")) == [other]


async def test_a_run_has_few_targets_and_a_deleted_run_none(store: Store) -> None:
    await begun(store, "r1")
    taken = [await store.push.put("r1", replace(TARGET, id=f"t{n}")) for n in range(MOST_TARGETS + 1)]
    same = await store.push.put("r1", replace(TARGET, id="t0"))
    await store.push.delete("r1", "t0")
    await store.push.delete("r1", "none")
    left = await store.push.list_of("r1")
    await store.runs.delete("r1")

    assert taken == [True] * MOST_TARGETS + [False]
    assert same is True
    assert [one.id for one in left] == [f"t{n}" for n in range(1, MOST_TARGETS)]
    assert list(await store.push.list_of("r1")) == []


async def test_two_processes_claim_each_target_once(url: str) -> None:
    stores = [await open_store(url) for _ in range(2)]
    await begun(stores[0], "r1")
    for number in range(MOST_TARGETS):
        await stores[0].push.put("r1", replace(TARGET, id=f"t{number}"))

    claims = await asyncio.gather(
        *(store.push.claim_due(most=3, seconds=60) for _ in range(4) for store in stores)
    )
    rest = await stores[0].push.claim_due(most=10, seconds=60)

    claimed = [due.target.id for due in (*(one for claim in claims for one in claim), *rest)]
    assert sorted(claimed) == sorted(f"t{number}" for number in range(MOST_TARGETS))
    for store in stores:
        await store.aclose()
