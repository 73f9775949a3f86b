"""A run as events of the API, in its rare courses: crashes, late tools, repetitions."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from beckon_agent.api.http.streaming import StreamPace
from beckon_agent.api.responses.events import Encoder
from beckon_agent.api.responses.stream import events_of_turns
from beckon_agent.core.model_types import AnswerDetails, Usage
from beckon_agent.core.records import Past, StoredCall, StoredTurn
from beckon_agent.core.run_events import (
    AnnotationAdded,
    AnswerDropped,
    ApprovalRequested,
    CallFinished,
    CallStarted,
    ReasoningDelta,
    RefusalDelta,
    RunEvent,
    RunFailed,
    RunFinished,
    RunSuspended,
    TextDelta,
    TurnNoted,
)
from beckon_agent.store.sql.open import open_store
from tests.agent.conftest import StartAgent
from tests.agent.responses.running_face import Event, events_of, face_app, kinds, said, valid
from tests.agent.responses.scripted_engine import RUN_ID, ScriptedEngine, stored_run
from tests.patience import PATIENCE
from tests.serving import served

pytestmark = pytest.mark.asyncio(loop_scope="module")

_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
FINISHED = RunFinished("stop", Usage(1, 2), ())


def to_events(events: Sequence[RunEvent], part: int = 1) -> list[Event]:
    """Return all events of a part, each valid by OpenAI's types."""
    encoder = Encoder(stored_run(), part)
    found = encoder.begin_response()
    for happened in events:
        found = found + encoder.feed_event(happened, 5.0)
    for event in found:
        _EVENT.validate_python(event, strict=True)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    return found


def started(call_id: str) -> CallStarted:
    return CallStarted(call_id, "f", {"a": 1})


def finished(call_id: str) -> CallFinished:
    return CallFinished(call_id, "f", "out", False, 0.1)


def approval_request(call_id: str) -> ApprovalRequested:
    return ApprovalRequested(f"event.{call_id}", call_id, "f", {"a": 1})


async def test_what_a_dead_process_began_to_say_is_no_part_of_the_response() -> None:
    events = to_events(
        [
            started("1"),
            finished("1"),
            ReasoningDelta("h"),
            TextDelta("Hal"),
            AnswerDropped(),
            TextDelta("Whole."),
            TurnNoted(1),
            FINISHED,
        ]
    )

    final = events[-1]["response"]
    assert [item["type"] for item in final["output"]] == ["mcp_call", "message"]
    assert said(final) == "Whole."
    cut = [event["item"]["status"] for event in events if event["type"] == "response.output_item.done"]
    assert cut == ["completed", "completed", "incomplete", "completed"]


async def test_what_was_whole_before_a_process_died_stays() -> None:
    events = to_events(
        [TextDelta("Kept."), TurnNoted(0), AnswerDropped(), started("1"), finished("1"), FINISHED]
    )

    assert said(events[-1]["response"]) == "Kept."


async def test_a_resumed_run_that_repeats_itself_is_reported_once() -> None:
    calls: list[RunEvent] = [started("1"), started("2"), finished("1")]
    plain = to_events([*calls, finished("2"), FINISHED])
    repeated = to_events([*calls, *calls, finished("2"), finished("2"), FINISHED])

    assert repeated == plain


async def test_questions_that_are_answered_before_anybody_waits_still_end_their_response() -> None:
    run: list[RunEvent] = [approval_request("1"), finished("1"), TextDelta("Done."), FINISHED]
    first, second = to_events(run), to_events(run, part=2)

    assert [item["type"] for item in first[-1]["response"]["output"]] == ["mcp_approval_request"]
    assert first[-1]["response"]["id"] == RUN_ID
    assert [item["type"] for item in second[-1]["response"]["output"]] == ["mcp_call", "message"]
    assert second[-1]["response"]["id"] == f"{RUN_ID}_2"
    assert second[-1]["response"]["output"][0]["arguments"] == '{"a":1}'


@pytest.mark.parametrize("calls", [[], [finished("1")]])
async def test_text_of_a_later_part_is_not_set_off_from_an_earlier_one(calls: list[RunEvent]) -> None:
    run = [
        TextDelta("May I?"),
        approval_request("1"),
        RunSuspended(),
        *calls,
        TextDelta("\n\nDone."),
        FINISHED,
    ]

    assert said(to_events(run, part=2)[-1]["response"]) == "Done."


async def test_a_run_that_fails_in_the_middle_closes_what_is_open() -> None:
    events = to_events([TextDelta("Let me"), started("1"), RunFailed("context_length_exceeded", "too long")])

    assert kinds(events)[-3:] == ["error", "output_item.done", "failed"]
    response = events[-1]["response"]
    assert response["error"] == {"code": "invalid_prompt", "message": "too long"}
    assert [item["status"] for item in response["output"]] == ["completed", "incomplete"]


async def test_a_run_that_is_not_at_its_end_is_retold_from_the_store() -> None:
    def call(number: int, call_id: str, **more: Any) -> StoredCall:
        return StoredCall(
            event_id=f"event.{call_id}",
            step=0,
            number=number,
            id=call_id,
            name="f",
            arguments={"a": 1},
            **more,
        )

    cited = {"type": "url_citation", "url": "u", "title": "", "start_index": 0, "end_index": 2}
    tokens = ({"token": "So.", "logprob": -1.0, "bytes": None, "top_logprobs": []},)
    past = Past(
        turns=[
            StoredTurn(step=0, text="Well.", reasoning="hm"),
            StoredTurn(step=1, text="So.", details=AnswerDetails(annotations=(cited,), logprobs=tokens)),
            StoredTurn(step=2, details=AnswerDetails(refusal="No.")),
        ],
        calls=[
            call(0, "1", state="done", result="out"),
            call(1, "2", state="done", result="out", decision="approved"),
        ],
    )
    live: list[RunEvent] = [
        ReasoningDelta("hm"),
        TextDelta("Well."),
        TurnNoted(0),
        started("1"),
        approval_request("2"),
        finished("1"),
        RunSuspended(),
        started("2"),
        finished("2"),
        TextDelta("\n\nSo.", tokens),
        AnnotationAdded(cited, 3),
        TurnNoted(1),
        RefusalDelta("No."),
        TurnNoted(2),
    ]

    def outputs(events: Sequence[RunEvent]) -> list[object]:
        parts = [Encoder(stored_run(), part) for part in (1, 2)]
        for event in events:
            for encoder in parts:
                encoder.feed_event(event)
        return [encoder.to_document(stored_run()) for encoder in parts]

    assert outputs(list(events_of_turns(stored_run(), past))) == outputs(live)


@asynccontextmanager
async def scripted(
    start_agent: StartAgent, engine: ScriptedEngine, pace: StreamPace | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the face in front of a scripted engine."""
    store = await open_store("sqlite://")
    try:
        async with (
            start_agent() as agent,
            served(face_app(engine, store, agent.service, pace or StreamPace())) as url,
            httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http,
        ):
            yield http
    finally:
        await store.aclose()


LATE: list[RunEvent] = [started("1"), RunSuspended(), finished("1"), TextDelta("Done."), FINISHED]


async def test_a_tool_that_takes_hours_holds_no_connection(start_agent: StartAgent) -> None:
    engine = ScriptedEngine(stored_run("suspended"), LATE)
    body = {"model": "beckon", "input": "go"}
    async with scripted(start_agent, engine) as http:
        whole = valid(await http.post("/v1/responses", json=body))
        events = events_of(await http.post("/v1/responses", json={**body, "stream": True}))

    assert whole["status"] == "in_progress"
    assert [item["status"] for item in whole["output"]] == ["in_progress"]
    assert kinds(events)[-1] == "in_progress"
    assert events[-1]["response"]["output"] == whole["output"]


async def test_a_stream_that_is_joined_waits_for_a_late_tool(start_agent: StartAgent) -> None:
    engine = ScriptedEngine(stored_run("completed", background=True, ended_at=7.0), LATE)
    body = {"model": "beckon", "input": "go", "stream": True}
    async with scripted(start_agent, engine) as http:
        begun = events_of(await http.post("/v1/responses", json=body))
        number = begun[-1]["sequence_number"]
        rest = events_of(await http.get(f"/v1/responses/{RUN_ID}?stream=true&starting_after={number}"))
        everything = events_of(await http.get(f"/v1/responses/{RUN_ID}?stream=true"))

    assert [*begun, *rest] == everything
    assert kinds(rest)[-1] == "completed"
    assert rest[-1]["response"]["completed_at"] == 7


async def test_a_store_that_goes_away_is_reported_in_the_stream(start_agent: StartAgent) -> None:
    engine = ScriptedEngine(stored_run(), [TextDelta("Let")], breaks=True)
    async with scripted(start_agent, engine) as http:
        answer = await http.post("/v1/responses", json={"input": "go", "stream": True})
        whole = await http.post("/v1/responses", json={"input": "go"})

    last = answer.text.strip().split("\n\n")[-1]
    assert last.startswith("event: error\n")
    assert '"code":"store_unavailable"' in last
    assert "completed" not in answer.text.replace('"completed_at"', "")
    assert (whole.status_code, whole.json()["error"]["code"]) == (503, "store_unavailable")


async def test_a_run_that_was_deleted_under_its_reader_ends_the_stream(start_agent: StartAgent) -> None:
    engine = ScriptedEngine(stored_run("cancelled"), [TextDelta("Let")])
    async with scripted(start_agent, engine) as http:
        events = events_of(await http.post("/v1/responses", json={"input": "go", "stream": True}))

    assert kinds(events)[-1] == "incomplete"
    assert events[-1]["response"]["status"] == "cancelled"
    assert events[-1]["response"]["output"][0]["status"] == "incomplete"
