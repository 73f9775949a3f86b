"""The kept events: their order, their end, and readers that miss none while others write."""

import asyncio
import json

from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store
from beckon_contract.cloudevents.events import CloudEvent
from tests.patience import PATIENCE

KEEP = 1_000


def event(number: int, kind: str = "order.placed", source: str = "/shop") -> CloudEvent:
    return CloudEvent(str(number), source, kind, b'{"n": %d}' % number, "application/json")


async def test_events_are_read_in_the_order_of_their_coming(store: Store) -> None:
    begun = (await store.feed.read(0, most=10)).last
    for number in range(5):
        assert await store.feed.append("default", event(number), keep=KEEP)

    page = await store.feed.read(begun, most=3)
    rest = await store.feed.read(page.entries[-1].position, most=10)

    assert [entry.event for entry in (*page.entries, *rest.entries)] == [
        f'{{"specversion":"1.0","id":"{n}","source":"/shop","type":"order.placed",'
        f'"datacontenttype":"application/json","data":{{"n": {n}}}}}'
        for n in range(5)
    ]
    assert rest.last == rest.entries[-1].position
    assert page.start == begun


async def test_a_second_delivery_of_an_event_is_not_stored_twice(store: Store) -> None:
    await store.feed.append("default", event(1), keep=KEEP)

    again = await store.feed.append("default", event(1), keep=KEEP)
    elsewhere = await store.feed.append("orders", event(1), keep=KEEP)
    of_another = await store.feed.append("default", event(1, source="/other"), keep=KEEP)

    assert (again, elsewhere, of_another) == (False, True, True)
    assert len((await store.feed.read(0, most=10)).entries) == 3


async def test_a_reader_chooses_a_namespace_and_a_type(store: Store) -> None:
    await store.feed.append("default", event(1), keep=KEEP)
    await store.feed.append("default", event(2, "order.paid"), keep=KEEP)
    await store.feed.append("orders", event(3, "order.paid"), keep=KEEP)

    page = await store.feed.read(0, most=10, namespace="default", event_type="order.paid")

    assert [(entry.namespace, entry.type) for entry in page.entries] == [("default", "order.paid")]
    assert page.last > page.entries[0].position


async def test_the_oldest_events_are_deleted_and_a_reader_can_see_it(store: Store) -> None:
    begun = (await store.feed.read(0, most=1)).last
    for number in range(30):
        await store.feed.append("default", event(number), keep=10)

    page = await store.feed.read(begun, most=100)

    ids = [json.loads(entry.event)["id"] for entry in page.entries]
    assert ids == [str(number) for number in range(20, 30)]
    assert begun < page.start < page.entries[0].position


async def test_any_attribute_is_stored_as_it_came(store: Store) -> None:
    await store.feed.append("default", event(1, source="/back\\slash/é"), keep=KEEP)

    (entry,) = (await store.feed.read(0, most=10)).entries

    assert '"source":"/back\\\\slash/é"' in entry.event


async def test_a_reader_misses_nothing_that_two_processes_write(url: str) -> None:
    writers = [await open_store(url) for _ in range(2)]
    reader = await open_store(url)
    read: list[int] = []

    async def write(store: Store, first: int) -> None:
        for number in range(first, first + 150):
            await store.feed.append("default", event(number), keep=KEEP)

    async def follow() -> None:
        cursor = begun
        while len(read) < 300:
            page = await reader.feed.read(cursor, most=7)
            read.extend(entry.position for entry in page.entries)
            # What a subscription does: it goes on behind the last event of the whole feed.
            cursor = page.entries[-1].position if len(page.entries) == 7 else page.last
            cursor = max([cursor, *(entry.position for entry in page.entries)])

    begun = (await reader.feed.read(0, most=1)).last
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(follow(), *(write(store, 1000 * n) for n, store in enumerate(writers)))

    assert len(read) == len(set(read)) == 300
    assert read == sorted(read)
    for store in (*writers, reader):
        await store.aclose()


async def test_a_new_database_has_later_positions_than_the_one_before(empty: str, another_empty: str) -> None:
    first = await open_store(empty)
    await first.feed.append("default", event(1), keep=KEEP)
    old = (await first.feed.read(0, most=10)).last
    await first.aclose()
    await asyncio.sleep(0.002)

    second = await open_store(another_empty)
    page = await second.feed.read(old, most=10)
    await second.aclose()

    assert page.start > old
