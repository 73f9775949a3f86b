"""Answers and events by the types of Open Responses itself, over the cases of its acceptance tests.

https://www.openresponses.org/compliance lists the cases. Its runner is in no package index, so the cases are
written here anew, and `openresponses-types`, which is generated from the specification, is what judges.
"""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openresponses_types.types as spec
import pytest
from pydantic import BaseModel

from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import Event, RunningFace, kinds
from tests.agent.scripted_model import Reply, asks_for, chunk, says, sse

pytestmark = pytest.mark.asyncio(loop_scope="module")

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Tell the weather of a place.",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}
ASKS_WEATHER = asks_for(("get_weather", {"place": "Bonn"}))
PICTURE = "data:image/png;base64,iVBORw0KGgo="


def event_types() -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the type of each event of the specification, and its class."""
    for name, found in vars(spec).items():
        if name.endswith("StreamingEvent"):
            for kind in found.model_fields["type"].annotation:
                yield kind.value, found


EVENTS = dict(event_types())


def message(text: str | list[dict[str, Any]], role: str = "user", **more: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": text, **more}


def judged(document: Event) -> Event:
    """Return a response that the specification allows."""
    spec.ResponseResource.model_validate(document)
    return document


async def ask(face: RunningFace, *given: dict[str, Any], **body: Any) -> Event:
    answer = await face.post(list(given), **body)
    assert answer.status_code == 200, answer.text
    return judged(answer.json())


async def stream(face: RunningFace, *given: dict[str, Any], **body: Any) -> list[Event]:
    """Return the events of a response, each allowed by the specification."""
    events = await face.stream(list(given), **body)
    for event in events:
        EVENTS[event["type"]].model_validate(event)
        if "response" in event:
            judged(event["response"])
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


async def test_the_types_know_all_events_that_the_specification_has() -> None:
    assert len(EVENTS) >= 24
    assert {"response.created", "response.output_text.delta", "error"} <= set(EVENTS)


async def test_a_plain_message_is_answered(start_face: StartFace) -> None:
    async with start_face(says("Hello you there.")) as face:
        response = await ask(face, message("Say hello in three words."))

    assert response["status"] == "completed"
    assert [item["type"] for item in response["output"]] == ["message"]


async def test_an_answer_is_streamed_by_its_events(start_face: StartFace) -> None:
    async with start_face(says("1, 2", ", 3")) as face:
        events = await stream(face, message("Count to 3."))

    assert kinds(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]


@pytest.mark.parametrize("role", ["system", "developer"])
async def test_a_system_prompt_may_come_in_the_input(start_face: StartFace, role: str) -> None:
    async with start_face(says("Arr.")) as face:
        response = await ask(face, message("You are a pirate.", role), message("Say hello."))

    assert response["status"] == "completed"


async def test_a_function_of_the_client_is_called(start_face: StartFace) -> None:
    async with start_face(ASKS_WEATHER) as face:
        response = await ask(face, message("How is the weather in Bonn?"), tools=[WEATHER])

    (call,) = response["output"]
    assert (call["type"], json.loads(call["arguments"])) == ("function_call", {"place": "Bonn"})
    assert response["tools"] == [{**WEATHER, "strict": None}]


async def test_a_call_of_a_function_of_the_client_is_streamed(start_face: StartFace) -> None:
    async with start_face(ASKS_WEATHER) as face:
        events = await stream(face, message("How is the weather in Bonn?"), tools=[WEATHER])

    assert kinds(events)[2:] == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]


async def test_the_answer_of_a_function_goes_back_by_the_items_or_by_the_response(
    start_face: StartFace,
) -> None:
    question = message("How is the weather in Bonn?")
    async with start_face(ASKS_WEATHER, says("Fair."), says("Fair, again.")) as face:
        asked = await ask(face, question, tools=[WEATHER])
        (call,) = asked["output"]
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "fair"}
        by_items = await ask(face, question, call, output, tools=[WEATHER])
        by_response = await ask(face, output, tools=[WEATHER], previous_response_id=asked["id"])

    assert by_items["status"] == by_response["status"] == "completed"
    assert by_response["previous_response_id"] == asked["id"]


async def test_an_image_may_be_asked_about(start_face: StartFace) -> None:
    parts = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": PICTURE},
    ]
    async with start_face(says("A dot.")) as face:
        response = await ask(face, message(parts))
        listed = await face.http.get(f"/v1/responses/{response['id']}/input_items")

    assert response["status"] == "completed"
    (item,) = listed.json()["data"]
    spec.Message.model_validate(item)


async def test_a_conversation_of_several_turns_is_history(start_face: StartFace) -> None:
    async with start_face(says("Alice.")) as face:
        response = await ask(
            face,
            message("My name is Alice."),
            message("Hello Alice!", "assistant"),
            message("What is my name?"),
        )

    assert response["status"] == "completed"


async def test_the_phases_of_an_assistants_messages_are_accepted(start_face: StartFace) -> None:
    async with start_face(says("Done.")) as face:
        response = await ask(
            face,
            message("Look it up."),
            message("I am looking.", "assistant", phase="commentary"),
            message("It is 7.", "assistant", phase="final_answer"),
            message("Thanks."),
        )

    assert response["status"] == "completed"


async def test_reasoning_is_an_item_with_events_of_its_own(start_face: StartFace) -> None:
    thought = sse(chunk({"reasoning_content": "Hm, "}), chunk({"content": "yes"}), chunk(finish="stop"))
    async with start_face(Reply((thought,)), Reply((thought,))) as face:
        response = await ask(face, message("Is it?"))
        events = await face.stream([message("Is it?")])

    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    # OpenAI's names: the specification has `reasoning.delta` for it.
    assert {"reasoning_text.delta", "reasoning_text.done"} <= set(kinds(events))


async def test_what_ends_early_or_fails_is_told_by_the_types(start_face: StartFace) -> None:
    cut = Reply((sse(chunk({"content": "Well"}), chunk(finish="length")),))
    broken = Reply((b"out of order",), status=500, content_type="text/plain")
    async with start_face(cut, cut, broken, broken) as face:
        incomplete = await ask(face, message("go"))
        ends_early = await stream(face, message("go"))
        fails = await face.stream([message("go")])
        failed = await face.post([message("go")])

    assert incomplete["incomplete_details"]["reason"] == "max_output_tokens"
    assert ends_early[-1]["type"] == "response.incomplete"
    # OpenAI's `error` has its members beside the type; the specification puts them into a member `error`.
    assert [event["type"] for event in fails[-2:]] == ["error", "response.failed"]
    judged(fails[-1]["response"])
    assert failed.status_code == 502
    spec.ErrorPayload.model_validate(failed.json()["error"])


async def test_errors_have_the_members_that_the_specification_names(start_face: StartFace) -> None:
    async with start_face() as face:
        answers: list[httpx.Response] = [
            await face.http.post("/v1/responses", json={"model": "nobody", "input": "go"}),
            await face.http.post("/v1/responses", json={"input": 7}),
            await face.http.get("/v1/responses/nothing"),
            await face.post("go", previous_response_id="resp_nothing"),
        ]

    for answer in answers:
        spec.ErrorPayload.model_validate(answer.json()["error"])
    assert [answer.status_code for answer in answers] == [404, 400, 404, 404]


async def test_only_the_clusters_own_calls_go_beyond_the_specification(start_face: StartFace) -> None:
    # Its types have no item for a call that the server makes: these are OpenAI's.
    async with start_face(asks_for(("test_echo", {"text": "x"})), says("Done.")) as face:
        events = await face.stream([message("go")])

    beyond = {event["type"] for event in events} - set(EVENTS)
    assert all(kind.startswith("response.mcp_call") for kind in beyond)
    response = events[-1]["response"]
    of_server = [item for item in response["output"] if item["type"] == "mcp_call"]
    assert len(of_server) == 1
    judged({**response, "output": [item for item in response["output"] if item not in of_server]})
