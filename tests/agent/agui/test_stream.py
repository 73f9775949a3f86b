"""The events of AG-UI for each event of a run, without a service."""

import json
from typing import Any

from beckon_agent.api.agui.events import AguiStream
from beckon_agent.core.run_events import (
    AnswerDropped,
    CallProgressed,
    ReasoningDelta,
    RunEvent,
    RunFailed,
    RunFinished,
    TextDelta,
)
from tests.agent.agui.conftest import kinds, read_events, text_of

THOUGHT = ["REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT"]
THOUGHT_END = ["REASONING_MESSAGE_END", "REASONING_END"]
TEXT = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"]


def made() -> AguiStream:
    return AguiStream("run_1", "t", "r", agent="beckon")


def encoded(stream: AguiStream, *events: RunEvent) -> list[Any]:
    """Return the events of AG-UI for these of a run."""
    return read_events(b"".join(stream.encode_event(event) for event in events).decode())


def test_reasoning_and_text_are_messages_of_their_own_and_blank_ones_are_none() -> None:
    events = encoded(
        made(), TextDelta("\n\n"), ReasoningDelta("Is it? "), ReasoningDelta("It is."), TextDelta("Yes.")
    )

    assert kinds(events) == [*THOUGHT, "REASONING_MESSAGE_CONTENT", *THOUGHT_END, *TEXT]
    assert text_of(events) == "Yes."
    assert {event.message_id for event in events} == {"run_1.1", "run_1.1.reasoning"}


def test_progress_is_an_activity_of_its_call() -> None:
    reports = CallProgressed("c1", "report", 1.0, 3.0, "one"), CallProgressed("c1", "report", 2.0, 3.0, "two")
    first, second = encoded(made(), *reports)

    assert first.message_id == second.message_id
    assert second.activity_type == "beckon.progress"
    assert second.content == {
        "toolCallId": "c1",
        "name": "report",
        "done": 2.0,
        "total": 3.0,
        "message": "two",
    }


def test_an_answer_that_is_begun_anew_ends_the_stream_with_an_error() -> None:
    stream = made()
    events = encoded(stream, TextDelta("Half an"), AnswerDropped(), TextDelta("Half an answer."))

    assert kinds(events)[-1] == "RUN_ERROR"
    assert events[-1].code == "broken_off"
    assert text_of(events) == "Half an"
    assert stream.is_ended


def test_a_cancelled_run_is_finished_and_a_failed_one_is_an_error() -> None:
    (cancelled,) = encoded(made(), RunFailed("cancelled", "the run was cancelled"))
    (failed,) = encoded(made(), RunFailed("model_error", "the model does not answer"))

    assert (cancelled.type, cancelled.outcome.type) == ("RUN_FINISHED", "cancelled")
    assert (failed.type, failed.code, failed.message) == (
        "RUN_ERROR",
        "model_error",
        "the model does not answer",
    )


def test_nothing_follows_the_last_event() -> None:
    stream = made()
    encoded(stream, RunFinished("stop", None, ()))

    assert stream.is_ended
    assert encoded(stream, TextDelta("more")) == []
    assert stream.end_cancelled() == stream.end_failed("internal", "no") == b""


def test_a_run_that_is_cancelled_in_the_middle_of_a_text_ends_the_text_before() -> None:
    stream = made()
    begun = encoded(stream, ReasoningDelta("Is it?"), TextDelta("Half an"))
    last = read_events(stream.end_cancelled().decode())

    assert kinds([*begun, *last]) == [*THOUGHT, *THOUGHT_END, *TEXT, "TEXT_MESSAGE_END", "RUN_FINISHED"]


def test_what_a_client_has_sent_comes_back_to_it_also_halves_of_surrogate_pairs() -> None:
    state = {"\ud83d": ["\ude00", 1]}
    stream = AguiStream("run_1", "\ud83d", "r", agent="beckon")
    started, snapshot = [
        json.loads(line[6:]) for line in stream.begin_run(state).decode().split("\n\n") if line
    ]

    assert (started["type"], started["threadId"], started["runId"]) == ("RUN_STARTED", "\ud83d", "r")
    assert (snapshot["type"], snapshot["snapshot"]) == ("STATE_SNAPSHOT", state)
