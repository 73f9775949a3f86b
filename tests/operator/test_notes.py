from beckon_operator.notes import Note, notes_of
from beckon_operator.tools import document, read_seen, wanted
from tests.operator.documents import Document, broker, event_type, ready, reply_trigger, trigger
from tests.operator.judged import Judged
from tests.operator.test_tools import NOW, stored

AROUND = (broker(), trigger(), reply_trigger())


def notes(judged: Judged, *then: Document) -> list[tuple[str, str]]:
    """Return types and reasons of what is told of a first Tool, or of it once further objects were seen."""
    first = wanted(judged.verdict())
    if not then:
        found = notes_of(first, None, "uid-tool")
    else:
        judged.see(*then)
        found = notes_of(wanted(judged.verdict()), read_seen(stored(document(first, None, NOW))), "uid-tool")
    return [(note.type, note.reason) for note in found]


def test_a_new_tool_is_told_of_with_what_is_worth_knowing() -> None:
    assert notes(Judged(*AROUND, event_type())) == [("Normal", "Ready"), ("Normal", "Declared")]
    assert notes(Judged(broker(), event_type())) == [("Warning", "NoTrigger"), ("Normal", "Declared")]
    assert notes(Judged(event_type(spec={"type": ""}))) == [("Warning", "InvalidEventType")]


def test_a_change_of_ready_is_told_and_nothing_else() -> None:
    gone = trigger(status=ready("False", "Gone"), generation=2)

    assert notes(Judged(*AROUND, event_type()), gone) == [("Warning", "TriggerNotReady")]
    assert notes(Judged(*AROUND, event_type()), event_type(spec={"description": "Better."})) == []


def test_an_outage_and_a_missing_dead_letter_sink_are_warnings() -> None:
    away = trigger(status=ready("False", "BrokerNotReady"))

    assert notes(Judged(*AROUND, event_type()), away) == [("Warning", "TriggerUnavailable")]
    assert notes(Judged(*AROUND, event_type()), broker(spec={})) == [("Warning", "NoDeadLetterSink")]


def test_a_doubt_about_the_parameters_is_a_warning() -> None:
    rival = event_type("get-weather")

    assert notes(Judged(*AROUND, event_type()), rival) == [("Warning", "NameCollision")]


def test_the_same_news_has_the_same_name_and_other_news_another() -> None:
    note = Note("team", "weather", "u", "Normal", "Ready", "x")

    assert note.name == Note("team", "weather", "u", "Normal", "Ready", "x").name
    assert note.name != Note("team", "weather", "u", "Normal", "Ready", "y").name
    assert note.name != Note("team", "weather", "other", "Normal", "Ready", "x").name
    assert len(Note("team", "n" * 253, "u", "Normal", "Ready", "x").name) == 253
