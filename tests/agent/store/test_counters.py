import time
from dataclasses import replace

import pytest

from beckon_agent.core.records import ReservedLimit
from beckon_agent.store.base import Store
from tests.agent.store.raw import count, execute
from tests.patience import eventually

WINDOW = 60.0
SHORT = 0.2
TABLES = ("limit_buckets", "limit_places", "limit_reservations")


async def used_up(store: Store, key: str, window: float) -> None:
    taken = await store.counters.take_amount(key, 3, limit=3, window=window)
    assert taken.allowed


async def test_a_limit_is_used_all_or_nothing(store: Store) -> None:
    take = store.counters.take_amount

    assert (await take("k", 4, limit=10, window=WINDOW)).allowed
    assert (await take("k", 5, limit=10, window=WINDOW)).allowed
    refused = await take("k", 2, limit=10, window=WINDOW)
    assert not refused.allowed
    assert 0 < refused.retry_after <= WINDOW
    assert (await take("k", 1, limit=10, window=WINDOW)).allowed
    assert not (await take("k", 1, limit=10, window=WINDOW)).allowed
    assert (await take("other", 10, limit=10, window=WINDOW)).allowed


async def test_what_is_more_than_the_limit_never_fits(store: Store) -> None:
    taken = await store.counters.take_amount("k", 11, limit=10, window=WINDOW)

    assert (taken.allowed, taken.retry_after) == (False, WINDOW)


async def test_no_one_gives_back_by_taking_less_than_nothing(store: Store) -> None:
    with pytest.raises(ValueError, match="may be negative"):
        await store.counters.take_amount("k", -1, limit=1, window=WINDOW)


async def test_a_window_slides(store: Store) -> None:
    begin = time.time()
    await used_up(store, "k", SHORT)
    refused = await store.counters.take_amount("k", 1, limit=3, window=SHORT)
    assert refused.allowed or refused.retry_after <= SHORT

    while not (await store.counters.take_amount("k", 3, limit=3, window=SHORT)).allowed:
        assert time.time() < begin + 10

    assert time.time() - begin >= SHORT


async def test_the_time_that_is_reported_is_when_there_will_be_room(store: Store, url: str) -> None:
    await used_up(store, "k", WINDOW)
    shown = (await store.counters.take_amount("k", 3, limit=3, window=WINDOW)).retry_after

    # As if so much time had gone by, and then the use was reported.
    await execute(url, "UPDATE limit_buckets SET last_used = last_used - 20")
    assert (await store.counters.take_amount("k", 3, limit=3, window=WINDOW)).retry_after == pytest.approx(
        shown - 20, abs=5
    )
    await execute(url, f"UPDATE limit_buckets SET last_used = last_used + 20 - {shown}")

    assert (await store.counters.take_amount("k", 3, limit=3, window=WINDOW)).allowed


async def test_a_limit_that_is_used_often_has_few_rows(store: Store, url: str) -> None:
    for _ in range(150):
        assert (await store.counters.take_amount("k", 1, limit=1000, window=3600.0)).allowed

    assert await count(url, "limit_buckets") <= 2
    assert not (await store.counters.take_amount("k", 851, limit=1000, window=3600.0)).allowed
    assert (await store.counters.take_amount("k", 850, limit=1000, window=3600.0)).allowed


async def test_places_are_taken_renewed_and_given_back(store: Store) -> None:
    enter = store.counters.take_place

    assert (await enter("k", "a", limit=2, seconds=WINDOW)).allowed
    assert (await enter("k", "b", limit=2, seconds=WINDOW)).allowed
    refused = await enter("k", "c", limit=2, seconds=WINDOW)
    assert not refused.allowed
    assert 0 < refused.retry_after <= WINDOW
    assert (await enter("k", "a", limit=2, seconds=WINDOW)).allowed
    assert (await enter("other", "c", limit=1, seconds=WINDOW)).allowed

    await store.counters.give_place_back("k", "a")
    await store.counters.give_place_back("k", "unknown")
    assert (await enter("k", "c", limit=2, seconds=WINDOW)).allowed
    assert not (await enter("k", "a", limit=2, seconds=WINDOW)).allowed


async def test_a_place_that_no_one_keeps_is_free_when_its_time_is_over(store: Store) -> None:
    begin = time.time()
    await store.counters.take_place("k", "dead", limit=1, seconds=SHORT)

    while not (await store.counters.take_place("k", "new", limit=1, seconds=SHORT)).allowed:
        assert time.time() < begin + 10

    assert time.time() - begin >= SHORT


async def test_a_limit_of_none_has_no_place(store: Store) -> None:
    taken = await store.counters.take_place("k", "a", limit=0, seconds=WINDOW)

    assert (taken.allowed, taken.retry_after) == (False, WINDOW)


async def test_a_limit_is_reserved_while_anything_is_left_and_settled_with_what_was_used(
    store: Store,
) -> None:
    limit = ReservedLimit(10, WINDOW, WINDOW)
    reserve, settle = store.counters.reserve_amount, store.counters.settle_reservation

    assert (await reserve("k", "a", 9, limit)).allowed
    assert (await reserve("k", "b", 9, limit)).allowed
    refused = await reserve("k", "c", 1, limit)
    assert not refused.allowed
    assert 0 < refused.retry_after <= 2
    assert (await reserve("k", "c", 1, replace(limit, behind_others=False))).allowed
    assert (await reserve("k", "a", 30, limit)).allowed

    for token in ("a", "b", "c"):
        await settle("k", token, 3, window=WINDOW)
    assert (await reserve("k", "d", 30, limit)).allowed
    await settle("k", "d", 30, window=WINDOW)
    refused = await reserve("k", "e", 1, replace(limit, behind_others=False))
    assert not refused.allowed
    assert WINDOW - 5 < refused.retry_after <= WINDOW


async def test_a_reservation_that_no_one_settles_ends_with_its_lease(store: Store) -> None:
    await store.counters.reserve_amount("k", "dead", 9, ReservedLimit(5, WINDOW, SHORT))

    async def is_free() -> bool:
        return (await store.counters.reserve_amount("k", "new", 9, ReservedLimit(5, WINDOW, WINDOW))).allowed

    assert not await is_free()
    await eventually(is_free)


async def test_what_counts_no_more_is_purged(store: Store, url: str) -> None:
    await used_up(store, "k", WINDOW)
    await store.counters.take_place("k", "a", limit=1, seconds=WINDOW)
    await store.counters.reserve_amount("k", "a", 1, ReservedLimit(9, WINDOW, WINDOW))
    await store.runs.purge(None)
    assert [await count(url, table) for table in TABLES] == [1, 1, 1]

    for table in TABLES:
        await execute(url, f"UPDATE {table} SET expires = 1")
    await store.runs.purge(None)

    assert [await count(url, table) for table in TABLES] == [0, 0, 0]
