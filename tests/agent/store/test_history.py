"""Lists of what an owner has: the newest first, page by page, no one else's; and the events of a run."""

from typing import Any

import pytest

from beckon_agent.core.model_types import Usage
from beckon_agent.core.records import Ended, Exchanged, RunFilter, RunStatus, StoredConversation
from beckon_agent.store.base import Store
from tests.agent.store.examples import ME, OTHER, answered, begun, call, called, ended, new_run, said, turn

ALL = RunFilter()


async def runs(store: Store, owner: str = "ann", **wanted: Any) -> list[str]:
    found = await store.history.list_runs(owner, RunFilter(**wanted), after=None, most=100)
    return [summary.run.id for summary in found]


async def opened(
    store: Store, name: str, *messages: dict[str, Any], at: float = 1.0, owner: str = "ann"
) -> None:
    await store.conversations.open(
        StoredConversation(id=name, owner=owner, metadata={}, created_at=at), messages
    )


async def found(store: Store, query: str = "", owner: str = "ann") -> list[tuple[str, str]]:
    listed = await store.history.list_conversations(owner, query=query, after=None, most=100)
    return [(summary.conversation.id, summary.title) for summary in listed]


async def test_runs_are_listed_the_newest_first_and_to_their_owner_alone(store: Store) -> None:
    for number in range(3):
        await ended(store, f"r{number}")
    await ended(store, "theirs", owner="bob")

    assert await runs(store) == ["r2", "r1", "r0"]
    assert await runs(store, "bob") == ["theirs"]
    assert await runs(store, "") == []


async def test_a_list_of_runs_goes_on_behind_its_last_one(store: Store) -> None:
    for number in range(5):
        await ended(store, f"r{number}")

    pages = []
    after = None
    while page := await store.history.list_runs("ann", ALL, after=after, most=2):
        pages.append([summary.run.id for summary in page])
        after = pages[-1][-1]

    assert pages == [["r4", "r3"], ["r2", "r1"], ["r0"]]


@pytest.mark.parametrize("owner", ["bob", "ann"])
async def test_a_list_goes_on_behind_nothing_that_its_owner_does_not_have(store: Store, owner: str) -> None:
    await ended(store, "r0")
    await opened(store, "c0")
    cursor = {"bob": ("r0", "c0"), "ann": ("nothing", "nothing")}[owner]

    with pytest.raises(KeyError):
        await store.history.list_runs(owner, ALL, after=cursor[0], most=2)
    with pytest.raises(KeyError):
        await store.history.list_conversations(owner, query="", after=cursor[1], most=2)
    with pytest.raises(KeyError):
        await store.history.list_waiting_calls(owner, "approval", after="nothing", most=2)


async def test_runs_are_chosen_by_what_became_of_them_by_agent_and_by_conversation(store: Store) -> None:
    await opened(store, "c0")
    await ended(store, "done")
    await begun(store, "working", agent="other")
    await ended(store, "talk", conversation="c0")
    await store.runs.create(new_run("queued"), holder=None, seconds=0)

    assert await runs(store, status="completed") == ["talk", "done"]
    assert await runs(store, status="queued") == ["queued"]
    assert await runs(store, agent="other") == ["working"]
    assert await runs(store, conversation="c0") == ["talk"]


async def test_runs_that_are_not_stored_or_have_no_agent_are_in_no_list(store: Store) -> None:
    await begun(store, "gone", retained=False)
    await begun(store, "items", agent="", face="conversations")

    assert await runs(store) == []


async def test_a_run_in_a_list_shows_its_question_its_tools_and_its_tokens(store: Store) -> None:
    picture = {"role": "user", "content": [{"type": "text", "text": "Look:\n  what"}, {"type": "image_url"}]}
    await begun(store, "r1", input=[{"role": "system", "content": "Be brief."}, picture, said("second")])
    calls = [call("e1"), call("e2", 1, "approval"), call("e3", 2, "done", name="sub", failed=True)]
    await store.journal.add_turn("r1", ME, turn(), calls)
    await store.journal.add_turn("r1", ME, turn(1), [])

    (summary,) = await store.history.list_runs("ann", ALL, after=None, most=9)

    assert summary.question == "Look: what"
    assert summary.tools == {"add": 2, "sub": 1}
    assert (summary.failed, summary.approvals) == (1, 1)
    assert summary.usage == Usage(20, 4, {"cached_tokens": 8})
    assert summary.run.status == "running"


async def test_a_run_that_has_ended_shows_the_tokens_that_were_counted_at_its_end(store: Store) -> None:
    await called(store, "r1")
    await store.runs.end_run("r1", ME, Ended("completed", "stop", Usage(70, 7), added=[]))

    (summary,) = await store.history.list_runs("ann", ALL, after=None, most=9)

    assert summary.usage == Usage(70, 7)


async def test_conversations_are_listed_the_newest_first_with_the_first_question_as_title(
    store: Store,
) -> None:
    await opened(store, "empty", at=1)
    await opened(store, "given", said("Given at once"), at=2)
    await opened(store, "talk", at=3)
    await opened(store, "theirs", said("Not yours"), at=4, owner="bob")
    for name in ("first", "second"):
        await ended(store, name, conversation="talk")

    assert await found(store) == [("talk", "ask first"), ("given", "Given at once"), ("empty", "")]
    assert await found(store, owner="bob") == [("theirs", "Not yours")]


async def test_the_conversation_that_was_used_last_is_first(store: Store) -> None:
    for number in range(3):
        await opened(store, f"c{number}", at=number)

    await begun(store, "r1", conversation="c1")
    assert [name for name, _ in await found(store)] == ["c1", "c2", "c0"]
    await begun(store, "r0", conversation="c0")
    assert [name for name, _ in await found(store)] == ["c0", "c1", "c2"]
    await store.runs.end_run("r1", ME, Ended("completed", "stop", added=[answered("Done")]))

    assert [name for name, _ in await found(store)] == ["c1", "c0", "c2"]


async def test_a_place_in_the_list_stays_when_its_conversation_is_used_or_gone(store: Store) -> None:
    for number in range(4):
        await opened(store, f"c{number}", at=number)
    page = await store.history.list_conversations("ann", query="", after=None, most=2)
    place = page[-1].place

    async def behind() -> list[str]:
        listed = await store.history.list_conversations("ann", query="", after=place, most=9)
        return [summary.conversation.id for summary in listed]

    before = await behind()
    await begun(store, "r2", conversation="c2")
    used = await behind()
    await store.conversations.close("c2")

    assert [one.conversation.id for one in page] == ["c3", "c2"]
    assert before == used == await behind() == ["c1", "c0"]


async def test_a_conversation_whose_first_answer_is_not_there_yet_has_its_title_and_is_found(
    store: Store,
) -> None:
    await opened(store, "c1")
    await begun(store, "r1", conversation="c1", input=[said("Will it rain?")])

    assert await found(store) == [("c1", "Will it rain?")]
    assert await found(store, "rain") == [("c1", "Will it rain?")]


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_a_conversation_whose_first_question_got_no_answer_is_found_by_it(
    store: Store, status: RunStatus
) -> None:
    await opened(store, "c1")
    await begun(store, "r1", conversation="c1", input=[said("Will it rain?")])
    await store.runs.end_run("r1", ME, Ended(status))

    assert await found(store) == await found(store, "rain") == [("c1", "Will it rain?")]

    await ended(store, "r2", conversation="c1")
    assert await found(store) == [("c1", "ask r2")]


async def test_a_long_first_question_is_cut_for_the_title(store: Store) -> None:
    await opened(store, "c1", said("long " * 100))

    ((_, title),) = await found(store)

    assert len(title) == 200
    assert title.endswith("…")


@pytest.mark.parametrize(
    "query",
    ["wetter", "WETTER IN", "in zürich", "ZÜRICH", "100 %", "100%_", "it's", "sunny", "done first", "C: x"],
)
async def test_a_search_finds_what_either_side_said(store: Store, query: str) -> None:
    await opened(
        store, "c1", said("Wie ist das Wetter  in\nZürich? 100 % 100%_ it's C:\\x\x00"), answered("Sunny.")
    )
    await ended(store, "first", conversation="c1")
    await opened(store, "c2", said("Something else"), at=2)

    assert [name for name, _ in await found(store, query)] == ["c1"]


@pytest.mark.parametrize("query", ["user", "role", "secret tool data", "_", "%", "content", "1000"])
async def test_a_search_finds_nothing_that_no_one_said(store: Store, query: str) -> None:
    data = {"role": "tool", "tool_call_id": "1", "name": "t", "content": "secret tool data"}
    await opened(store, "c1", said("Hello"), data, answered("Well"))

    assert await found(store, query) == []


async def test_a_search_goes_on_behind_its_last_find(store: Store) -> None:
    for number in range(4):
        await opened(store, f"c{number}", said("even" if number % 2 == 0 else "odd"), at=number)

    first = await store.history.list_conversations("ann", query="even", after=None, most=1)
    rest = await store.history.list_conversations("ann", query="even", after="c2", most=9)

    assert [one.conversation.id for one in first] == ["c2"]
    assert [one.conversation.id for one in rest] == ["c0"]


async def test_runs_side_by_side_in_one_conversation_are_all_found(store: Store) -> None:
    await opened(store, "c1")
    await begun(store, "r1", conversation="c1", input=[said("apples")])
    await begun(store, "r2", conversation="c1", input=[said("pears")])
    for name in ("r1", "r2"):
        await store.runs.end_run(name, ME, Ended("completed", "stop", added=[answered(f"ate {name}")]))

    for query in ("apples", "pears", "ate r1", "ate r2"):
        assert await found(store, query) == [("c1", "apples")]


async def test_calls_that_wait_for_a_person_are_listed_to_their_owner_until_a_decision(
    store: Store,
) -> None:
    await called(store, "r1", call("e1", 0, "approval"), call("e2", 1), call("e3", 2, "approval"))
    await begun(store, "theirs", owner="bob")
    await store.journal.add_turn("theirs", ME, turn(), [call("e4", 0, "approval")])

    waiting = await store.history.list_waiting_calls("ann", "approval", after=None, most=9)
    behind = await store.history.list_waiting_calls("ann", "approval", after="e1", most=9)
    await store.journal.store_decision("e1", "approved", by="ann")
    left = await store.history.list_waiting_calls("ann", "approval", after=None, most=9)
    await store.runs.end_run("r1", None, Ended("cancelled"))

    assert [(one.call.event_id, one.run_id, one.question) for one in waiting] == [
        ("e1", "r1", "ask r1"),
        ("e3", "r1", "ask r1"),
    ]
    assert waiting[0].since is not None
    assert [one.call.event_id for one in behind] == ["e3"]
    assert [one.call.event_id for one in left] == ["e3"]
    assert await store.history.list_waiting_calls("ann", "approval", after=None, most=9) == []
    assert [
        one.call.event_id
        for one in await store.history.list_waiting_calls("bob", "approval", after=None, most=9)
    ] == ["e4"]


async def test_a_run_that_was_stopped_waits_for_no_one(store: Store) -> None:
    await called(store, "r1", call("e1", state="approval"))
    (before,) = await store.history.list_runs("ann", ALL, after=None, most=9)

    await store.runs.end_run("r1", None, Ended("cancelled"))
    (after,) = await store.history.list_runs("ann", ALL, after=None, most=9)

    assert (before.approvals, after.approvals) == (1, 0)


async def test_every_step_has_its_time_and_every_sending_is_counted(store: Store) -> None:
    run = await begun(store, "r1")
    await store.journal.add_turn("r1", ME, turn(seconds=1.5), [call("e1"), call("e2", 1, "approval")])
    await store.journal.mark_sent("r1", ME, "e1")
    await store.journal.mark_sent("r1", ME, "e1")
    await store.journal.finish_call("e1", result=1, failed=False, seconds=0.1)
    await store.journal.store_decision("e2", "denied", by="ann")

    past = await store.runs.load_past("r1")

    (request,) = past.turns
    made, denied = past.calls
    assert request.seconds == 1.5
    assert made.attempts == 2
    assert denied.attempts is None
    times = [run.created_at, request.ended_at, made.sent_at, made.finished_at, denied.decided_at]
    known = [time for time in times if time is not None]
    assert len(known) == len(times)
    assert known == sorted(known)


@pytest.mark.parametrize(
    ("came", "deliveries"),
    [
        ({"event": {"id": "x", "beckondeliveries": "3"}}, 3),
        ({"event": {"id": "x"}}, None),
        ({"problem": {"beckondeliveries": "3"}}, None),
        ({"event": "none"}, None),
    ],
)
async def test_a_call_shows_how_often_its_reply_says_that_it_came(
    store: Store, came: dict[str, Any], deliveries: int | None
) -> None:
    await called(store, "r1", call("e1"))
    exchanged = Exchanged("e1", "add", None, came)
    await store.journal.finish_call("e1", result=1, failed=False, seconds=0.1, exchanged=exchanged)

    (made,) = (await store.runs.load_past("r1")).calls

    assert made.deliveries == deliveries


async def test_a_run_whose_process_died_shows_how_often_another_went_on_with_it(store: Store) -> None:
    await begun(store, "died", seconds=0)
    await store.runs.create(new_run("waited"), holder=None, seconds=0)

    claimed = {run.id: run for run in await store.runs.claim_runs(OTHER, seconds=60, most=9)}

    assert claimed["died"].takeovers == 1
    assert claimed["died"].taken_over_at is not None
    assert not claimed["waited"].takeovers
    assert claimed["waited"].taken_over_at is None


async def test_events_and_replies_are_stored_as_they_were(store: Store) -> None:
    await called(store, "r1", call("e1"), call("e2", 1), call("e3", 2))
    sent = {"event": {"id": "e1", "data": {"big": 2**70, "text": "\x00\ud800 é"}}}
    came = {"event": {"id": "x", "data_base64": "AP8="}, "omitted": 5}
    for event_id in ("e1", "e2"):
        await store.journal.mark_sent("r1", ME, event_id)
    await store.journal.finish_call(
        "e1", result=1, failed=False, seconds=0.1, exchanged=Exchanged("e1", "add", sent, came)
    )
    await store.journal.mark_accepted("r1", ME, "e2", seconds=9e9, exchanged=Exchanged("e2", "add", sent))
    late = Exchanged("e2", "add", reply=came)  # by who has not made the call
    await store.journal.finish_call("e2", result=1, failed=False, seconds=None, exchanged=late)

    exchanged = await store.history.list_exchanged("r1", after=None, most=9)

    assert exchanged == [
        Exchanged("e1", "add", sent, came),
        Exchanged("e2", "add", sent, came),
        Exchanged("e3", "add", None, None),
    ]
    assert await store.history.list_exchanged("r1", after="e1", most=1) == exchanged[1:2]
    with pytest.raises(KeyError):
        await store.history.list_exchanged("another", after="e1", most=1)
