import asyncio

import pytest

from beckon_operator.desired_state import Action
from beckon_operator.tools import tool_document, wanted_tool
from tests.operator.documents import Document, broker, event_type, reply_trigger, trigger
from tests.operator.judged import Judged
from tests.operator.test_tools import NOW, stored

ROUTE = (broker(), trigger(), reply_trigger())
KEY = ("team", "get.weather")


def tool_of(judged: Judged, version: int = 100) -> Document:
    return stored(tool_document(wanted_tool(judged.verdict()), None, NOW), version)


def action(judged: Judged) -> Action:
    return judged.desired.next_action(*KEY)


def test_a_tool_that_is_missing_is_created_and_then_left_alone() -> None:
    judged = Judged(*ROUTE, event_type())
    assert action(judged) is Action.CREATE

    judged.see(tool_of(judged))
    assert action(judged) is Action.NOTHING


def test_a_tool_that_says_something_else_is_replaced() -> None:
    judged = Judged(*ROUTE, event_type())
    judged.see(tool_of(judged))

    judged.see(event_type(spec={"description": "Better."}))

    assert action(judged) is Action.REPLACE


def test_a_tool_of_an_event_type_that_was_made_anew_is_replaced() -> None:
    judged = Judged(*ROUTE, event_type(uid="first"))
    judged.see(tool_of(judged))

    judged.see(event_type(uid="second"))

    assert action(judged) is Action.REPLACE


@pytest.mark.parametrize("labels", [{"beckon.dev/tool": "false"}, None])
def test_a_tool_without_its_event_type_is_deleted(labels: dict[str, str] | None) -> None:
    judged = Judged(*ROUTE, event_type())
    judged.see(tool_of(judged))

    if labels:
        judged.see(event_type(labels=labels))
    else:
        judged.lose(event_type())

    assert action(judged) is Action.DELETE


def test_a_tool_that_is_being_deleted_is_waited_for() -> None:
    judged = Judged(*ROUTE, event_type())
    leaving = tool_of(judged)
    leaving["metadata"]["deletionTimestamp"] = NOW
    judged.see(leaving)

    judged.lose(event_type())
    assert action(judged) is Action.NOTHING

    judged.see(event_type(uid="again"))
    judged.lose(leaving)
    assert action(judged) is Action.CREATE


def test_a_tool_that_others_made_is_neither_replaced_nor_deleted() -> None:
    judged = Judged(*ROUTE, event_type())
    foreign = tool_of(judged)
    foreign["metadata"]["ownerReferences"] = []
    judged.see(foreign)
    assert action(judged) is Action.FOREIGN

    judged.lose(event_type())
    assert action(judged) is Action.NOTHING


def test_what_the_api_server_stores_in_other_words_is_not_written_again() -> None:
    judged = Judged(*ROUTE, event_type())
    other_words = tool_of(judged, version=50)
    other_words["spec"]["description"] = "THE WEATHER."
    tool = judged.desired.wanted_tool(*KEY)
    assert tool is not None

    judged.desired.mark_written(tool, "uid-tool", 50)
    judged.see(other_words)
    assert action(judged) is Action.NOTHING

    judged.see(stored(other_words, version=51))
    assert action(judged) is Action.REPLACE


async def test_what_differs_is_queued_once_until_it_is_taken() -> None:
    judged = Judged(*ROUTE, event_type())
    for _ in range(3):
        judged.desired.queue_all()
    queue = judged.desired.queue
    assert len(queue) == 1

    assert await queue.take() == KEY
    queue.finish(KEY)
    assert len(queue) == 0
    judged.see(tool_of(judged))
    judged.desired.queue_all()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.take(), 0.01)


def test_a_deleted_tool_is_written_again_at_once() -> None:
    judged = Judged(*ROUTE, event_type())
    judged.see(tool_of(judged))
    judged.lose(tool_of(judged))

    assert action(judged) is Action.CREATE
    assert judged.desired.seconds_to_settle(*KEY) == 0


def test_the_tool_of_a_new_event_type_is_written_at_once() -> None:
    judged = Judged(*ROUTE, event_type(uid="first"))
    judged.see(tool_of(judged))
    judged.see(event_type(uid="second"))

    judged.lose(tool_of(judged))

    assert judged.verdict().ready.status == "True"
    assert action(judged) is Action.CREATE
    assert judged.desired.seconds_to_settle(*KEY) == 0
