import time
from dataclasses import replace

import pytest

from beckon_agent.core.records import Ended, LogEntries, Past, StoredCall
from beckon_agent.store.base import NotHeld, Store
from tests.agent.store.examples import LONG, ME, OTHER, begun, call, called, turn

BIG = 123456789012345678901234567890
AWKWARD = {
    "big": [BIG, -BIG],
    "small": 1e-300,
    "text": "naïve\x00\ud800 \\u0000 'quoted\"",
    "": {"nested": [None, True, {}]},
}


async def test_a_past_is_read_as_it_was_stored_in_its_order(store: Store) -> None:
    first = turn(0, reasoning="因为 \\ \x00", finish_reason="tool_calls", sent=("b", "a"))
    second = turn(1, text="", usage=None)
    calls = [call("e2", 1, arguments=AWKWARD, extra={"signature": "xyz"}), call("e1", 0, state="approval")]
    last = call("e3", 0, step=1)
    await begun(store, "r1")

    await store.journal.add_turn("r1", ME, first, calls)
    await store.journal.add_turn("r1", ME, second, [last])

    assert await store.runs.load_past("r1") == Past([first, second], [calls[1], calls[0], last])
    assert await store.journal.find_call("e2") == ("r1", calls[0])
    assert await store.journal.find_call("none") is None


@pytest.mark.parametrize("result", [AWKWARD, "text", BIG, 0, False, None, [], 1.5], ids=str)
async def test_a_result_is_stored_as_it_came(store: Store, result: object) -> None:
    await called(store, "r1", call("e1"))

    assert await store.journal.finish_call("e1", result=result, failed=True, seconds=0.25)

    expected = call("e1", state="done", result=result, failed=True, seconds=0.25)
    assert await store.journal.find_call("e1") == ("r1", expected)


async def test_the_last_report_of_a_call_is_stored_until_it_is_done(store: Store) -> None:
    await called(store, "r1", call("e1", 0, state="accepted"), call("e2", 1, state="approval"))

    assert await store.journal.store_report("e1", {"progress": 1, "total": None, "message": ""})
    assert await store.journal.store_report("e1", {"progress": 2.5, "total": 3, "message": "naïve"})
    assert not await store.journal.store_report("e2", {"progress": 1, "total": None, "message": ""})
    assert not await store.journal.store_report("none", {"progress": 1, "total": None, "message": ""})

    (reported,) = await store.journal.list_reports("r1")
    assert (reported.event_id, reported.report) == ("e1", {"progress": 2.5, "total": 3, "message": "naïve"})
    assert await store.journal.list_reports("other") == []

    await store.journal.finish_call("e1", result=1, failed=False, seconds=None)
    assert await store.journal.list_reports("r1") == []
    assert not await store.journal.store_report("e1", {"progress": 3, "total": 3, "message": ""})


async def test_what_is_no_json_is_refused_and_changes_nothing(store: Store) -> None:
    await called(store, "r1", call("e1"))

    with pytest.raises(ValueError, match="no JSON"):
        await store.journal.finish_call("e1", result={"now": object()}, failed=False, seconds=None)

    assert await store.journal.find_call("e1") == ("r1", call("e1"))


async def test_a_turn_is_stored_with_all_its_calls_or_not_at_all(store: Store) -> None:
    await called(store, "r1", call("taken"))

    with pytest.raises(ValueError, match="step 1 of run 'r1', or one of its calls, is stored already"):
        await store.journal.add_turn("r1", ME, turn(1), [call("new", 0, step=1), call("taken", 1, step=1)])
    with pytest.raises(ValueError, match="step 0 of run 'r1'"):
        await store.journal.add_turn("r1", ME, turn(0), [])

    assert await store.runs.load_past("r1") == Past([turn()], [call("taken")])


async def test_no_one_adds_to_a_run_that_ended_or_never_was(store: Store) -> None:
    await begun(store, "r1")
    await store.runs.end_run("r1", ME, Ended("completed"))

    for run_id in ("r1", "none"):
        with pytest.raises(NotHeld):
            await store.journal.add_turn(run_id, ME, turn(), [])


async def test_a_call_goes_from_open_to_sent_to_accepted_to_done(store: Store) -> None:
    await called(store, "r1", call("e1"))

    await store.journal.mark_sent("r1", ME, "e1")
    assert await _call(store, "e1") == call("e1", state="sent")
    await store.journal.mark_sent("r1", ME, "e1")
    await store.journal.mark_accepted("r1", ME, "e1", seconds=60)
    accepted = await _call(store, "e1")
    assert replace(accepted, deadline=None) == call("e1", state="accepted")
    assert accepted.deadline == pytest.approx(time.time() + 60, abs=5)
    assert await store.journal.finish_call("e1", result=3, failed=False, seconds=None)
    assert await _call(store, "e1") == call("e1", state="done", result=3, deadline=accepted.deadline)


async def test_a_call_is_finished_once_and_never_reopened(store: Store) -> None:
    await called(store, "r1", call("e1"))
    await store.journal.mark_sent("r1", ME, "e1")

    assert await store.journal.finish_call("e1", result="first", failed=False, seconds=1)
    assert not await store.journal.finish_call("e1", result="second", failed=True, seconds=2)
    await store.journal.mark_sent("r1", ME, "e1")
    await store.journal.mark_accepted("r1", ME, "e1", seconds=5)

    assert await _call(store, "e1") == call("e1", state="done", result="first", seconds=1)


async def test_only_a_call_that_may_be_made_is_sent(store: Store) -> None:
    await called(store, "r1", call("waiting", 0, state="approval"), call("denied", 1, state="approval"))
    await store.journal.store_decision("denied", "denied", by="bob")

    with pytest.raises(ValueError, match="'waiting' must not be sent: its state is 'approval'"):
        await store.journal.mark_sent("r1", ME, "waiting")
    with pytest.raises(ValueError, match="'denied' must not be sent: it was denied"):
        await store.journal.mark_sent("r1", ME, "denied")
    with pytest.raises(ValueError, match="'other' must not be sent: it is no call of this run"):
        await store.journal.mark_sent("r1", ME, "other")


async def test_a_decision_counts_once_and_is_stored_with_its_reason(store: Store) -> None:
    await called(store, "r1", call("e1", state="approval"))

    assert await store.journal.store_decision("e1", "approved", by="bob", reason="it's fine")
    assert not await store.journal.store_decision("e1", "denied", by="eve")

    expected = call("e1", decision="approved", decided_by="bob", decision_reason="it's fine")
    assert await _call(store, "e1") == expected


async def test_a_decision_counts_only_where_it_is_waited_for(store: Store) -> None:
    await called(store, "r1", call("open"), call("late", 1, state="approval"))
    await store.runs.end_run("r1", None, Ended("cancelled"))

    assert not await store.journal.store_decision("open", "approved", by="bob")
    assert not await store.journal.store_decision("late", "approved", by="bob")
    assert not await store.journal.store_decision("none", "approved", by="bob")
    assert await _call(store, "late") == call("late", 1, state="approval")


async def test_a_suspended_run_is_queued_when_the_last_thing_it_waits_for_comes(store: Store) -> None:
    await called(store, "r1", call("asked", 0, state="approval"), call("later", 1), call("done", 2))
    await store.journal.finish_call("done", result=0, failed=False, seconds=1)
    await store.journal.mark_sent("r1", ME, "later")
    await store.journal.mark_accepted("r1", ME, "later", seconds=60)
    assert await store.runs.suspend("r1", ME) == "suspended"

    assert await store.journal.finish_call("later", result=7, failed=False, seconds=None)
    assert await store.runs.claim_runs(OTHER, seconds=LONG, most=1) == []
    assert await store.journal.store_decision("asked", "denied", by="bob")

    [run] = await store.runs.claim_runs(OTHER, seconds=LONG, most=1)
    assert (run.id, run.holder) == ("r1", OTHER)


async def test_a_decision_is_not_held_up_by_a_tool_that_answers_later(store: Store) -> None:
    await called(store, "r1", call("asked", 0, state="approval"), call("later", 1), call("too", 2))
    for name in ("later", "too"):
        await store.journal.mark_sent("r1", ME, name)
        await store.journal.mark_accepted("r1", ME, name, seconds=60)
    assert await store.runs.suspend("r1", ME) == "suspended"

    assert await store.journal.store_decision("asked", "approved", by="bob")
    [run] = await store.runs.claim_runs(OTHER, seconds=LONG, most=1)
    await store.journal.finish_call("asked", result=1, failed=False, seconds=1)
    assert await store.runs.suspend(run.id, OTHER) == "suspended"

    assert await store.journal.finish_call("too", result=2, failed=False, seconds=None)
    assert await store.runs.claim_runs(OTHER, seconds=LONG, most=1) == []
    assert await store.journal.finish_call("later", result=3, failed=False, seconds=None)
    assert [run.id for run in await store.runs.claim_runs(OTHER, seconds=LONG, most=1)] == ["r1"]


async def test_a_running_run_is_not_queued_by_a_result(store: Store) -> None:
    await called(store, "r1", call("e1"))

    await store.journal.finish_call("e1", result=1, failed=False, seconds=1)

    assert await store.runs.claim_runs(OTHER, seconds=LONG, most=1) == []


async def test_late_answers_are_found_the_longest_overdue_first(store: Store) -> None:
    for name, seconds in (("r1", 30), ("r2", -20), ("r3", -10), ("r4", -25)):
        await called(store, name, call(f"e-{name}"))
        await store.journal.mark_sent(name, ME, f"e-{name}")
        await store.journal.mark_accepted(name, ME, f"e-{name}", seconds=seconds)
    await store.runs.end_run("r4", ME, Ended("failed"))

    late = await store.journal.list_overdue(most=5)

    assert [(run_id, stored.event_id) for run_id, stored in late] == [("r2", "e-r2"), ("r3", "e-r3")]
    assert [run_id for run_id, _ in await store.journal.list_overdue(most=1)] == ["r2"]
    await store.journal.finish_call("e-r2", result=None, failed=True, seconds=None)
    assert [run_id for run_id, _ in await store.journal.list_overdue(most=5)] == ["r3"]


async def test_events_are_read_behind_a_number_in_their_order(store: Store) -> None:
    await begun(store, "r1")
    await store.events.append("r1", ME, LogEntries(1, [{"n": 1}, {"n": BIG}]))
    await store.events.append("r1", ME, LogEntries(3, [{"n": 3}]))

    assert await store.events.read_after("r1", 0, most=2) == [(1, {"n": 1}), (2, {"n": BIG})]
    assert await store.events.read_after("r1", 2, most=9) == [(3, {"n": 3})]
    assert await store.events.read_after("r1", 3, most=9) == []


async def test_an_event_that_is_there_stays_as_it_is(store: Store) -> None:
    await begun(store, "r1")
    await store.events.append("r1", ME, LogEntries(1, [{"n": "first"}]))

    await store.events.append("r1", ME, LogEntries(1, [{"n": "again"}, {"n": "second"}]))
    await store.events.append("r1", ME, LogEntries(3, []))

    assert await store.events.read_after("r1", 0, most=9) == [(1, {"n": "first"}), (2, {"n": "second"})]


async def test_only_the_holder_of_a_run_writes_into_its_log(store: Store) -> None:
    await begun(store, "r1")
    await begun(store, "ended")
    await store.runs.end_run("ended", ME, Ended("completed"))

    for run_id, holder in (("r1", OTHER), ("ended", ME), ("none", ME)):
        with pytest.raises(NotHeld):
            await store.events.append(run_id, holder, LogEntries(1, [{"n": 1}]))

    await begun(store, "none")
    for run_id in ("r1", "ended", "none"):
        assert await store.events.read_after(run_id, 0, most=9) == []


async def test_a_tool_may_say_that_it_has_a_call_who_holds_its_run(store: Store) -> None:
    await called(store, "r1", call("sent"), call("open", 1), call("done", 2))
    await store.journal.mark_sent("r1", ME, "sent")
    await store.journal.finish_call("done", result=1, failed=False, seconds=None)

    for name in ("sent", "open", "done"):
        await store.journal.mark_accepted("r1", None, name, seconds=60)

    assert replace(await _call(store, "sent"), deadline=None) == call("sent", state="accepted")
    assert await _call(store, "open") == call("open", 1)
    assert (await _call(store, "done")).state == "done"


async def _call(store: Store, event_id: str) -> StoredCall:
    found = await store.journal.find_call(event_id)
    assert found is not None
    return replace(found[1])
