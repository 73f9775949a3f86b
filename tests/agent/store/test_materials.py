"""Documents that turns share: stored once, and deleted after the runs that they belong to."""

from beckon_agent.core.records import Past
from beckon_agent.store.base import Store
from tests.agent.store.examples import ME, begun, ended, turn
from tests.agent.store.raw import count, execute

DAY = 86_400


async def test_a_document_is_read_as_it_was_stored_and_stored_once(store: Store, url: str) -> None:
    documents = {"a": {"text": "\x00 \ud800 ü", "number": 2**80}, "b": ["a"]}

    await store.materials.store_documents(documents)
    await store.materials.store_documents(documents)

    assert await store.materials.read_documents(["b", "a", "a", "missing"]) == documents
    assert await store.materials.read_documents([]) == {}
    assert await count(url, "materials") == 2


async def test_thousands_of_documents_are_stored_and_read_at_once(store: Store) -> None:
    documents = {f"d{number}": [number] for number in range(2_500)}

    await store.materials.store_documents(documents)

    assert await store.materials.read_documents(documents) == documents


async def test_a_purge_leaves_what_a_run_that_stays_may_need(store: Store, url: str) -> None:
    await store.materials.store_documents({"old": 1, "new": 2})
    await ended(store, "r1")
    await execute(url, f"UPDATE materials SET used_at = used_at - {2 * DAY} WHERE digest = 'old'")

    await store.runs.purge(None)
    remaining = await store.materials.read_documents(["old", "new"])
    await execute(url, f"UPDATE materials SET used_at = used_at - {2 * DAY} WHERE digest = 'new'")
    await execute(url, f"UPDATE runs SET created_at = created_at - {2 * DAY}")
    await store.runs.purge(None)

    assert remaining == {"new": 2}
    assert await store.materials.read_documents(["old", "new"]) == {"new": 2}


async def test_what_is_said_to_be_used_again_stays_for_longer(store: Store, url: str) -> None:
    await store.materials.store_documents({"a": 1})
    await execute(url, f"UPDATE materials SET used_at = used_at - {2 * DAY}")
    await store.materials.store_documents({"a": 1})

    await store.runs.purge(None)

    assert await store.materials.read_documents(["a"]) == {"a": 1}


async def test_a_turn_keeps_the_request_and_how_the_model_wrote_its_calls(store: Store) -> None:
    request = {"model": "m", "system": "a", "tools": "b"}
    written = [{"id": "1", "name": "add", "arguments": "{'a': 1}", "extra": {}}]
    whole = turn(written=written, prompt=request)
    await begun(store, "r1")
    await store.journal.add_turn("r1", ME, whole, [])

    assert await store.runs.load_past("r1") == Past([whole], [])


async def test_what_a_run_has_added_is_reported_once_it_has_ended(store: Store) -> None:
    await begun(store, "r1")
    before = await store.runs.load_added_messages("r1")
    await ended(store, "r2")

    assert before == []
    assert await store.runs.load_added_messages("r2") == [{"role": "assistant", "content": "done r2"}]
    assert await store.runs.load_added_messages("missing") == []


async def test_a_scratch_store_is_empty_and_apart(store: Store) -> None:
    await ended(store, "r1")
    scratch = await store.open_scratch()
    try:
        assert await scratch.runs.get("r1") is None
        await ended(scratch, "r2")
    finally:
        await scratch.aclose()

    assert await store.runs.get("r2") is None
