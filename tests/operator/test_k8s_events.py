import asyncio

import pytest

from beckon_operator.desired_state import Action
from beckon_operator.k8s_events import EventNote, EventRecorder, event_on_undescribed, events_of
from beckon_operator.metrics import Metrics
from beckon_operator.tools import read_seen, tool_document, wanted_tool
from beckon_operator.writer import Writer
from tests.operator.documents import Document, broker, event_type, ready, reply_trigger, trigger
from tests.operator.judged import Judged
from tests.operator.test_tools import NOW, stored
from tests.patience import until
from tests.sources.api_server import api_server

ROUTE = (broker(), trigger(), reply_trigger())


def notes(judged: Judged, *then: Document) -> list[tuple[str, str]]:
    """Return types and reasons of the events of a first Tool, or of it after further objects."""
    first = wanted_tool(judged.verdict())
    if not then:
        found = events_of(first, None, "uid-tool")
    else:
        judged.see(*then)
        found = events_of(
            wanted_tool(judged.verdict()), read_seen(stored(tool_document(first, None, NOW))), "uid-tool"
        )
    return [(note.type, note.reason) for note in found]


def test_a_new_tool_learns_of_with_what_is_worth_knowing() -> None:
    assert notes(Judged(*ROUTE, event_type())) == [("Normal", "Ready"), ("Normal", "Declared")]
    assert notes(Judged(broker(), event_type())) == [("Warning", "NoTrigger"), ("Normal", "Declared")]
    assert notes(Judged(event_type(spec={"type": ""}))) == [("Warning", "InvalidEventType")]


def test_a_change_of_ready_is_reported_and_nothing_else() -> None:
    gone = trigger(status=ready("False", "Gone"), generation=2)

    assert notes(Judged(*ROUTE, event_type()), gone) == [("Warning", "TriggerNotReady")]
    assert notes(Judged(*ROUTE, event_type()), event_type(spec={"description": "Better."})) == []


def test_an_outage_and_a_missing_dead_letter_sink_are_warnings() -> None:
    away = trigger(status=ready("False", "BrokerNotReady"))

    assert notes(Judged(*ROUTE, event_type()), away) == [("Warning", "TriggerUnavailable")]
    assert notes(Judged(*ROUTE, event_type()), broker(spec={})) == [("Warning", "NoDeadLetterSink")]


def test_a_doubt_about_the_parameters_is_a_warning() -> None:
    rival = event_type("get-weather")

    assert notes(Judged(*ROUTE, event_type()), rival) == [("Warning", "NameCollision")]


def action(judged: Judged) -> Action:
    return judged.desired.next_action("team", "get.weather")


def test_an_event_type_without_a_description_has_an_event_that_says_what_to_write() -> None:
    judged = Judged(*ROUTE, event_type(spec={"description": ""}))
    skipped = judged.desired.undescribed_event_type("team", "get.weather")

    assert action(judged) is Action.EXPLAIN
    assert skipped is not None
    note = event_on_undescribed(skipped)
    assert (note.api_version, note.kind) == ("eventing.knative.dev/v1beta2", "EventType")
    assert (note.regarding, note.uid) == ("get.weather", "uid-EventType-get.weather")
    assert (note.type, note.reason) == ("Warning", "NoDescription")
    assert 'no spec.description; write one, or set label beckon.dev/tool: "true"' in note.message


def test_the_event_about_a_missing_description_is_posted_once_until_it_is_missing_again() -> None:
    judged = Judged(*ROUTE, event_type(spec={"description": ""}))
    judged.desired.mark_explained("uid-EventType-get.weather")
    judged.see(event_type(spec={"description": ""}, labels={"a": "b"}))
    assert action(judged) is Action.NOTHING

    judged.see(event_type())
    assert action(judged) is Action.CREATE
    judged.see(event_type(spec={"description": ""}))
    assert action(judged) is Action.EXPLAIN


async def test_the_operator_posts_the_event_about_a_missing_description() -> None:
    judged, metrics = Judged(*ROUTE, event_type(spec={"description": ""})), Metrics()
    async with api_server() as server, server.client() as api:
        recorder = EventRecorder(api, metrics, "beckon-operator-0")
        writer = Writer(api, judged.judge.cluster, judged.desired, lambda: True, recorder)
        tasks = [asyncio.create_task(writer.write_queued(1, metrics))]
        tasks.append(asyncio.create_task(recorder.post_events()))
        judged.desired.queue_tool("team", "get.weather")
        await until(lambda: server.posted)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    (posted,) = server.posted
    assert (posted["type"], posted["reason"]) == ("Warning", "NoDescription")
    assert posted["regarding"]["kind"] == "EventType"
    assert posted["regarding"]["name"] == "get.weather"
    assert "write one" in posted["note"]


def test_a_tool_that_lost_its_description_is_deleted_before_that_is_explained() -> None:
    judged = Judged(*ROUTE, event_type())
    tool = stored(tool_document(wanted_tool(judged.verdict()), None, NOW))
    judged.see(tool, event_type(spec={"description": ""}))
    assert action(judged) is Action.DELETE

    judged.lose(tool)
    assert action(judged) is Action.EXPLAIN


@pytest.mark.parametrize(
    "skipped",
    [
        {"labels": {"beckon.dev/tool": "false"}},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u", "controller": True}]},
    ],
    ids=["by-label", "by-a-controller"],
)
def test_an_event_type_that_is_no_tool_on_purpose_has_no_event(skipped: Document) -> None:
    judged = Judged(*ROUTE, event_type(spec={"description": ""}, **skipped))

    assert action(judged) is Action.NOTHING


def test_the_same_news_has_the_same_name_and_other_news_another() -> None:
    note = EventNote("team", "weather", "u", "Normal", "Ready", "x")

    assert note.name == EventNote("team", "weather", "u", "Normal", "Ready", "x").name
    assert note.name != EventNote("team", "weather", "u", "Normal", "Ready", "y").name
    assert note.name != EventNote("team", "weather", "other", "Normal", "Ready", "x").name
    assert len(EventNote("team", "n" * 253, "u", "Normal", "Ready", "x").name) == 253
