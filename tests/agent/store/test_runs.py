import time

import pytest

from beckon_agent.core.model_types import Usage
from beckon_agent.core.records import Ended, LogEntries, Past
from beckon_agent.store.base import NotHeld, RunExists, Store
from tests.agent.store.examples import (
    LONG,
    ME,
    OTHER,
    answered,
    begun,
    call,
    called,
    ended,
    new_run,
    said,
    turn,
)
from tests.agent.store.raw import execute

OVER = -1.0
"""A lease that has run out already."""


async def test_a_run_is_read_as_it_was_stored(store: Store) -> None:
    new = new_run("r1", request={"n": 1}, background=True, retained=True, agent="größe\u2028")
    before = time.time()

    created = await store.runs.create(new, holder=ME, seconds=LONG)

    assert created == await store.runs.get("r1")
    assert (created.status, created.holder, created.request) == ("running", ME, {"n": 1})
    assert before - 1 < created.created_at < time.time() + 1
    assert created.held_until == pytest.approx(created.created_at + LONG)


async def test_a_run_without_a_holder_is_queued(store: Store) -> None:
    created = await store.runs.create(new_run("r1"), holder=None, seconds=LONG)

    assert (created.status, created.holder, created.held_until) == ("queued", None, None)
    assert created == await store.runs.get("r1")


async def test_what_does_not_exist_is_reported_from_what_is_empty(store: Store) -> None:
    assert await store.runs.get("none") is None
    assert await store.runs.get("no\x00ne\ud800") is None
    assert await store.runs.load_past("none") == Past([], [])
    assert await store.runs.load_messages("none") == []
    assert not await store.runs.delete("none")


async def test_an_id_is_given_once(store: Store) -> None:
    await begun(store, "r1", input=[said("first")])

    with pytest.raises(RunExists, match="there is a run 'r1' already"):
        await begun(store, "r1", input=[said("second")])

    assert await store.runs.load_messages("r1") == [said("first")]


async def test_a_run_behind_nothing_is_refused_by_name(store: Store) -> None:
    with pytest.raises(KeyError, match="nothing"):
        await begun(store, "r1", previous="nothing")
    with pytest.raises(KeyError, match="no thread"):
        await begun(store, "r1", conversation="no thread")

    assert await store.runs.get("r1") is None


async def test_a_follower_finds_all_that_came_before_in_order(store: Store) -> None:
    await ended(store, "r1")
    await ended(store, "r2", previous="r1")
    await begun(store, "r3", previous="r2")

    assert await store.runs.load_messages("r3") == [
        said("ask r1"),
        answered("done r1"),
        said("ask r2"),
        answered("done r2"),
        said("ask r3"),
    ]


async def test_two_followers_of_one_run_know_nothing_of_each_other(store: Store) -> None:
    await ended(store, "r1")
    await ended(store, "left", previous="r1")
    await ended(store, "right", previous="r1")

    assert await store.runs.load_messages("right") == [said("ask r1"), answered("done r1"), said("ask right")]


async def test_a_run_is_resumed_with_what_it_found_not_with_what_it_added(store: Store) -> None:
    await ended(store, "r1")

    assert await store.runs.load_messages("r1") == [said("ask r1")]


async def test_a_long_conversation_is_read_whole(store: Store) -> None:
    for number in range(300):
        await ended(store, f"r{number}", previous=f"r{number - 1}" if number else None)

    found = await store.runs.load_messages("r299")

    assert len(found) == 599
    assert found[-3:] == [said("ask r298"), answered("done r298"), said("ask r299")]


async def test_deleting_a_run_keeps_the_conversation_of_its_followers(store: Store) -> None:
    await ended(store, "r1")
    await ended(store, "r2", previous="r1")

    assert await store.runs.delete("r1")

    assert await store.runs.get("r1") is None
    assert await store.runs.load_messages("r2") == [said("ask r1"), answered("done r1"), said("ask r2")]
    with pytest.raises(KeyError):
        await begun(store, "r3", previous="r1")


async def test_a_deleted_run_takes_its_steps_and_events_along(store: Store) -> None:
    await called(store, "r1", call("e1"))
    await store.events.append("r1", ME, LogEntries(1, [{"type": "begun"}]))

    assert await store.runs.delete("r1")
    assert not await store.runs.delete("r1")

    assert await store.runs.load_past("r1") == Past([], [])
    assert await store.journal.find_call("e1") is None
    assert await store.events.read_after("r1", 0, most=10) == []
    assert not await store.journal.finish_call("e1", result=1, failed=False, seconds=1)


async def test_an_end_is_stored_whole(store: Store) -> None:
    await begun(store, "r1")
    error = {"code": "model_error", "message": "it said\x00no"}
    usage = Usage(2**40, 3, {"cached_tokens": 2}, {"reasoning_tokens": 1})

    assert await store.runs.end_run("r1", ME, Ended("failed", "length", usage, error))

    run = await store.runs.get("r1")
    assert run is not None
    assert (run.status, run.ending, run.usage, run.error) == ("failed", "length", usage, error)
    assert (run.holder, run.held_until) == (None, None)
    assert run.ended_at is not None
    assert run.ended_at >= run.created_at


async def test_a_run_ends_once(store: Store) -> None:
    await begun(store, "r1")

    assert await store.runs.end_run("r1", None, Ended("cancelled"))
    assert not await store.runs.end_run("r1", None, Ended("failed"))
    with pytest.raises(NotHeld):
        await store.runs.end_run("r1", ME, Ended("completed"))

    run = await store.runs.get("r1")
    assert run is not None
    assert run.status == "cancelled"


async def test_only_a_final_status_ends_a_run(store: Store) -> None:
    await begun(store, "r1")

    with pytest.raises(ValueError, match="'queued' is no status to end with"):
        await store.runs.end_run("r1", ME, Ended("queued"))


async def test_a_run_that_is_not_stored_is_deleted_when_it_ends(store: Store) -> None:
    await begun(store, "r1", retained=False)
    await store.journal.add_turn("r1", ME, turn(), [call("e1")])

    assert await store.runs.end_run("r1", ME, Ended("completed", added=[answered("yes")]))

    assert await store.runs.get("r1") is None
    assert await store.journal.find_call("e1") is None


async def test_a_run_that_is_not_stored_cannot_be_followed(store: Store) -> None:
    await begun(store, "r1", retained=False)

    with pytest.raises(KeyError, match="r1"):
        await begun(store, "r2", previous="r1")


async def test_the_oldest_free_runs_are_claimed_first(store: Store) -> None:
    await begun(store, "held")
    await begun(store, "lost", seconds=OVER)
    for name in ("q1", "q2", "q3"):
        await store.runs.create(new_run(name), holder=None, seconds=LONG)

    claimed = await store.runs.claim_runs(OTHER, seconds=LONG, most=3)

    assert [run.id for run in claimed] == ["lost", "q1", "q2"]
    assert {(run.status, run.holder) for run in claimed} == {("running", OTHER)}
    assert claimed[0] == await store.runs.get("lost")
    assert claimed[0].input == [said("ask lost")]
    assert [run.id for run in await store.runs.claim_runs(OTHER, seconds=LONG, most=3)] == ["q3"]
    assert await store.runs.claim_runs(OTHER, seconds=LONG, most=3) == []


async def test_who_lost_a_run_can_change_nothing_of_it(store: Store) -> None:
    await begun(store, "r1", seconds=OVER)
    await store.journal.add_turn("r1", ME, turn(), [call("e1")])
    [taken] = await store.runs.claim_runs(OTHER, seconds=LONG, most=1)

    with pytest.raises(NotHeld):
        await store.journal.add_turn("r1", ME, turn(1), [])
    with pytest.raises(NotHeld):
        await store.journal.mark_sent("r1", ME, "e1")
    with pytest.raises(NotHeld):
        await store.journal.mark_accepted("r1", ME, "e1", seconds=1.0)
    with pytest.raises(NotHeld):
        await store.events.append("r1", ME, LogEntries(1, [{"type": "begun"}]))
    with pytest.raises(NotHeld):
        await store.runs.suspend("r1", ME)
    with pytest.raises(NotHeld):
        await store.runs.end_run("r1", ME, Ended("completed", added=[]))

    assert await store.runs.get("r1") == taken
    assert await store.runs.load_past("r1") == Past([turn()], [call("e1")])


async def test_a_lease_that_ran_out_unnoticed_can_be_renewed(store: Store) -> None:
    await begun(store, "r1", seconds=OVER)
    await begun(store, "r2")
    await begun(store, "r3")
    await store.runs.end_run("r3", ME, Ended("completed"))

    assert await store.runs.renew_leases(ME, seconds=LONG) == {"r1", "r2"}
    assert await store.runs.renew_leases(OTHER, seconds=LONG) == frozenset()
    assert await store.runs.claim_runs(OTHER, seconds=LONG, most=9) == []


async def test_a_suspended_run_is_held_by_no_one_and_claimed_by_no_one(store: Store) -> None:
    await called(store, "r1", call("e1", state="approval"))

    assert await store.runs.suspend("r1", ME) == "suspended"

    run = await store.runs.get("r1")
    assert run is not None
    assert (run.status, run.holder, run.held_until) == ("suspended", None, None)
    assert await store.runs.claim_runs(OTHER, seconds=LONG, most=9) == []
    assert await store.runs.renew_leases(ME, seconds=LONG) == frozenset()


async def test_a_run_whose_answer_came_before_it_was_suspended_is_queued(store: Store) -> None:
    await called(store, "r1", call("e1"))
    await store.journal.mark_sent("r1", ME, "e1")
    await store.journal.mark_accepted("r1", ME, "e1", seconds=60)
    await store.journal.finish_call("e1", result=1, failed=False, seconds=None)

    assert await store.runs.suspend("r1", ME) == "queued"

    assert [run.id for run in await store.runs.claim_runs(OTHER, seconds=LONG, most=9)] == ["r1"]


async def test_a_run_is_queued_for_a_form_that_is_not_in_its_log(store: Store) -> None:
    await called(store, "r1", call("first"), call("second", 1))
    for name in ("first", "second"):
        await store.journal.mark_sent("r1", ME, name)
        assert await store.journal.store_input_request(name, {"message": "?", "schema": {}}, seconds=60)

    assert await store.runs.suspend("r1", ME, forms=["first"]) == "queued"
    [run] = await store.runs.claim_runs(OTHER, seconds=LONG, most=9)
    assert await store.runs.suspend(run.id, OTHER, forms=["first", "second"]) == "suspended"

    assert await store.runs.claim_runs(OTHER, seconds=LONG, most=9) == []


async def test_only_runs_that_ended_so_long_ago_are_purged(store: Store, url: str) -> None:
    await ended(store, "old")
    await ended(store, "follower", previous="old")
    await begun(store, "running")
    await execute(url, "UPDATE runs SET ended_at = ended_at - 100 WHERE id = 'old'")

    assert await store.runs.purge(None) == 0
    assert await store.runs.purge(50) == 1

    assert await store.runs.get("old") is None
    assert await store.runs.get("running") is not None
    assert await store.runs.load_messages("follower") == [
        said("ask old"),
        answered("done old"),
        said("ask follower"),
    ]
    assert await store.runs.purge(-1) == 1
    assert await store.runs.get("follower") is None


async def test_who_lets_a_run_go_is_not_counted_as_lost(store: Store) -> None:
    for name in ("dead", "left", "kept"):
        await begun(store, name, seconds=OVER if name == "dead" else LONG)

    await store.runs.release_runs(ME, seconds=OVER, only=["left"])
    claimed = await store.runs.claim_runs(OTHER, seconds=LONG, most=9)

    assert {run.id: run.lost for run in claimed} == {"dead": 1, "left": 0}
    with pytest.raises(NotHeld):
        await store.journal.add_turn("left", ME, turn(), [])


async def test_a_run_that_was_let_go_is_left_alone_for_a_while(store: Store) -> None:
    await begun(store, "r1")

    await store.runs.release_runs(ME, seconds=LONG)

    run = await store.runs.get("r1")
    assert run is not None
    assert (run.status, run.holder) == ("queued", None)
    assert await store.runs.claim_runs(OTHER, seconds=LONG, most=9) == []


async def test_processes_are_lost_in_a_row_until_the_next_step(store: Store) -> None:
    await begun(store, "r1", seconds=OVER)
    for lost in (1, 2, 3):
        [run] = await store.runs.claim_runs(ME, seconds=OVER, most=1)
        assert run.lost == lost

    await store.journal.add_turn("r1", ME, turn(), [])

    [run] = await store.runs.claim_runs(ME, seconds=OVER, most=1)
    assert run.lost == 1


async def test_the_time_that_a_run_waits_for_people_is_no_work(store: Store) -> None:
    first = await begun(store, "r1")
    await store.runs.suspend("r1", ME)

    waiting = await store.runs.get("r1")
    assert waiting is not None
    assert waiting.since is None
    assert 0 <= waiting.worked < LONG
    assert first.since == pytest.approx(first.created_at)


async def test_work_goes_on_counting_where_a_process_was_lost(store: Store) -> None:
    first = await begun(store, "r1", seconds=OVER)
    [second] = await store.runs.claim_runs(OTHER, seconds=LONG, most=1)
    assert second.since is not None
    assert first.since is not None
    assert second.worked == pytest.approx(second.since - first.since, abs=0.01)

    await store.runs.release_runs(OTHER, seconds=OVER)
    [third] = await store.runs.claim_runs(OTHER, seconds=LONG, most=1)

    assert third.since is not None
    assert third.since >= first.created_at
    assert third.worked > 0
