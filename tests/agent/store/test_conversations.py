import pytest

from beckon_agent.core.records import Ended, StoredConversation
from beckon_agent.store.base import Store
from tests.agent.store.examples import ME, answered, begun, ended, said

THREAD = StoredConversation(id="c1", owner="ann", metadata={"topic": "größe \x00"}, created_at=1234.5)
OPENING = [said("hello")]


async def test_a_conversation_is_read_as_it_was_opened(store: Store) -> None:
    await store.conversations.open(THREAD, OPENING)

    assert await store.conversations.find("c1") == THREAD
    assert await store.conversations.read("c1") == OPENING
    assert await store.conversations.find("none") is None
    assert await store.conversations.read("none") == []


async def test_a_conversation_is_opened_once(store: Store) -> None:
    await store.conversations.open(THREAD, OPENING)

    with pytest.raises(ValueError, match="there is a conversation 'c1' already"):
        await store.conversations.open(THREAD, [])

    assert await store.conversations.read("c1") == OPENING


async def test_the_metadata_is_replaced_as_a_whole(store: Store) -> None:
    await store.conversations.open(THREAD, [])

    assert await store.conversations.update("c1", {"new": "yes"})
    assert not await store.conversations.update("none", {})

    found = await store.conversations.find("c1")
    assert found is not None
    assert (found.metadata, found.owner) == ({"new": "yes"}, "ann")


async def test_each_ended_run_adds_to_its_conversation(store: Store) -> None:
    await store.conversations.open(THREAD, OPENING)
    await ended(store, "r1", conversation="c1")
    await begun(store, "r2", conversation="c1")

    before = [*OPENING, said("ask r1"), answered("done r1")]
    assert await store.runs.load_messages("r2") == [*before, said("ask r2")]
    assert await store.conversations.read("c1") == before
    await store.runs.end_run("r2", ME, Ended("incomplete", added=[answered("half")]))
    assert await store.conversations.read("c1") == [*before, said("ask r2"), answered("half")]


async def test_a_run_that_added_nothing_leaves_its_conversation_as_it_was(store: Store) -> None:
    await store.conversations.open(THREAD, OPENING)
    await begun(store, "r1", conversation="c1")

    await store.runs.end_run("r1", ME, Ended("failed"))

    assert await store.conversations.read("c1") == OPENING


async def test_runs_side_by_side_add_one_after_the_other_as_they_end(store: Store) -> None:
    await store.conversations.open(THREAD, OPENING)
    await begun(store, "r1", conversation="c1")
    await begun(store, "r2", conversation="c1")
    await store.runs.end_run("r2", ME, Ended("completed", added=[answered("two")]))
    await store.runs.end_run("r1", ME, Ended("completed", added=[answered("one")]))
    await begun(store, "follower", previous="r1")

    both = [*OPENING, said("ask r2"), answered("two"), said("ask r1"), answered("one")]
    assert await store.conversations.read("c1") == both
    assert await store.runs.load_messages("r1") == [*OPENING, said("ask r1")]
    assert await store.runs.load_messages("follower") == [
        *OPENING,
        said("ask r1"),
        answered("one"),
        said("ask follower"),
    ]


async def test_a_conversation_keeps_what_deleted_runs_added(store: Store) -> None:
    await store.conversations.open(THREAD, OPENING)
    await ended(store, "r1", conversation="c1")
    await ended(store, "r2", conversation="c1", retained=False)

    assert await store.runs.delete("r1")

    expected = [
        *OPENING,
        said("ask r1"),
        answered("done r1"),
        said("ask r2"),
        answered("done r2"),
    ]
    assert await store.conversations.read("c1") == expected


async def test_the_runs_of_a_closed_conversation_stay(store: Store) -> None:
    await store.conversations.open(THREAD, OPENING)
    await ended(store, "r1", conversation="c1")
    await begun(store, "r2", conversation="c1")

    assert await store.conversations.close("c1")
    assert not await store.conversations.close("c1")

    assert await store.conversations.find("c1") is None
    assert await store.conversations.read("c1") == []
    assert await store.runs.end_run("r2", ME, Ended("completed", added=[]))
    assert await store.runs.load_messages("r2") == [
        *OPENING,
        said("ask r1"),
        answered("done r1"),
        said("ask r2"),
    ]


async def test_a_conversation_may_begin_empty(store: Store) -> None:
    await store.conversations.open(THREAD, [])
    await ended(store, "r1", conversation="c1")

    assert await store.conversations.read("c1") == [said("ask r1"), answered("done r1")]


async def test_a_conversation_is_rewritten_and_its_runs_keep_what_they_had_seen(store: Store) -> None:
    await store.conversations.open(THREAD, OPENING)
    await ended(store, "r1", conversation="c1")
    await begun(store, "r2", conversation="c1")

    assert await store.conversations.rewrite("c1", lambda messages: messages[1:])
    assert not await store.conversations.rewrite("c1", lambda _: None)
    assert not await store.conversations.rewrite("none", lambda messages: messages)

    assert await store.conversations.read("c1") == [said("ask r1"), answered("done r1")]
    assert await store.runs.load_messages("r1") == [*OPENING, said("ask r1")]
    await ended(store, "r3", conversation="c1")
    assert await store.conversations.read("c1") == [
        said("ask r1"),
        answered("done r1"),
        said("ask r3"),
        answered("done r3"),
    ]
