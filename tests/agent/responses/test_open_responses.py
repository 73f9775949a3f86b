"""Answers and events by the types of Open Responses itself, over the cases of its acceptance tests.

https://www.openresponses.org/compliance lists the cases. Its runner is in no package index, so the cases are
written here anew, each also with a call of a cluster's tool in its run. `openresponses-types`, which is
generated from the specification, judges them, and OpenAI's types beside it.
"""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openresponses_types.types as spec
import pytest
from openai.types.responses import Response
from pydantic import BaseModel

from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import Event, RunningFace, events_of, kinds, valid
from tests.agent.scripted_model import Reply, asks_for, chunk, says, sse

pytestmark = pytest.mark.asyncio(loop_scope="module")

WEATHER = {
    "type": "function",
    "name": "get_weather",
    "description": "Tell the weather of a place.",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
}
ASKS_WEATHER = asks_for(("get_weather", {"place": "Bonn"}))
ECHO = asks_for(("test_echo", {"text": "from the cluster"}))
OPENAI = {"x-stainless-lang": "python"}
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


def function_output(call_id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "64 degrees and clear"}


QUESTION = message("How is the weather in Bonn?")
CALL = {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{}"}
CASES: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "text": ([message("Say hello in three words.")], {}),
    "system prompt": ([message("You are a pirate.", "system"), message("Say hello.")], {}),
    "developer prompt": ([message("You are a pirate.", "developer"), message("Say hello.")], {}),
    "image": (
        [
            message(
                [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": PICTURE},
                ]
            )
        ],
        {},
    ),
    "several turns": (
        [
            message("My name is Alice."),
            message("Hello Alice!", "assistant"),
            message("What is my name?"),
        ],
        {},
    ),
    "phases": (
        [
            message("I should answer with the saved number.", "assistant", phase="commentary"),
            message("The number is four.", "assistant", phase="final_answer"),
            message("Repeat only the number."),
        ],
        {},
    ),
    "function": ([QUESTION], {"tools": [WEATHER]}),
    "forced function": ([QUESTION], {"tools": [WEATHER], "tool_choice": "required"}),
    "function result": ([QUESTION, CALL, function_output("call_1")], {"tools": [WEATHER]}),
}
"""The input of each case of the acceptance tests, and the rest of its request."""


def judged(document: Event) -> Event:
    """Return a response that both the specification and OpenAI's types allow."""
    spec.ResponseResource.model_validate(document)
    Response.model_validate_json(json.dumps(document), strict=True)
    return document


async def post(face: RunningFace, given: object, headers: dict[str, str] | None = None, **body: Any) -> Any:
    return await face.http.post(
        "/v1/responses", json={"model": "beckon", "input": given, **body}, headers=headers
    )


async def ask(face: RunningFace, *given: dict[str, Any], **body: Any) -> Event:
    answer = await post(face, list(given), **body)
    assert answer.status_code == 200, answer.text
    return judged(answer.json())


async def stream(face: RunningFace, *given: dict[str, Any], **body: Any) -> list[Event]:
    """Return the events of a response, each allowed by the specification and by OpenAI's types."""
    answer = await post(face, list(given), stream=True, **body)
    events = events_of(answer)
    for event in events:
        EVENTS[event["type"]].model_validate(event)
        if "response" in event:
            judged(event["response"])
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


async def test_the_types_know_all_events_that_the_specification_has() -> None:
    assert len(EVENTS) >= 24
    assert {"response.created", "response.output_text.delta", "error"} <= set(EVENTS)


@pytest.mark.parametrize("with_call", [False, True], ids=["alone", "with a call in the cluster"])
@pytest.mark.parametrize("case", CASES)
async def test_each_case_is_answered_and_streamed_by_both_types(
    start_face: StartFace, case: str, with_call: bool
) -> None:
    given, more = CASES[case]
    item = "function_call" if case in ("function", "forced function") else "message"
    turns = [*([ECHO] if with_call else []), ASKS_WEATHER if item == "function_call" else says("Well", ".")]
    async with start_face(*turns, *turns) as face:
        response = await ask(face, *given, **more)
        events = await stream(face, *given, **more)
        sent = face.agent.requests[len(turns) - 1].body["messages"]

    assert response["status"] == events[-1]["response"]["status"] == "completed"
    assert [one["type"] for one in response["output"]] == [item]
    assert [one["type"] for one in events[-1]["response"]["output"]] == [item]
    assert ("from the cluster" in json.dumps(sent)) == with_call
    deltas = ["function_call_arguments.delta", "function_call_arguments.done"]
    parts = ["content_part.added", "output_text.delta", "output_text.done", "content_part.done"]
    assert kinds(events) == [
        "created",
        "in_progress",
        "output_item.added",
        *(deltas if item == "function_call" else parts),
        "output_item.done",
        "completed",
    ]


async def test_the_answer_of_a_function_goes_back_by_the_response(start_face: StartFace) -> None:
    async with start_face(ASKS_WEATHER, ECHO, says("Fair.")) as face:
        pending = await ask(face, QUESTION, tools=[WEATHER])
        (call,) = pending["output"]
        answered = await ask(face, function_output(call["call_id"]), previous_response_id=pending["id"])

    assert json.loads(call["arguments"]) == {"place": "Bonn"}
    assert pending["tools"] == [{**WEATHER, "strict": None}]
    assert (answered["status"], answered["previous_response_id"]) == ("completed", pending["id"])


async def test_the_input_with_an_image_is_listed_by_the_types(start_face: StartFace) -> None:
    given, _ = CASES["image"]
    async with start_face(says("A dot.")) as face:
        response = await ask(face, *given)
        listed = await face.http.get(f"/v1/responses/{response['id']}/input_items")

    (item,) = listed.json()["data"]
    spec.Message.model_validate(item)


@pytest.mark.parametrize(
    "chosen",
    [{"headers": OPENAI}, {"include": ["mcp_call"]}, {"headers": OPENAI, "include": ["mcp_call"]}],
)
async def test_openais_packages_and_requests_that_include_it_get_openais_items(
    start_face: StartFace, chosen: dict[str, Any]
) -> None:
    async with start_face(ECHO, says("Done."), ECHO, says("Done.")) as face:
        response = valid(await post(face, "go", **chosen))
        events = events_of(await post(face, "go", stream=True, **chosen))

    assert [item["type"] for item in response["output"]] == ["mcp_call", "message"]
    assert {event["type"] for event in events} - set(EVENTS) == {
        "response.mcp_call.in_progress",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        "response.mcp_call.completed",
    }


async def test_the_clusters_calls_are_shown_on_request_as_items_with_our_slug(start_face: StartFace) -> None:
    own: dict[str, Any] = {"include": ["beckon:tool_call"]}
    async with start_face(ECHO, says("Done."), ECHO, says("Done."), says("Again.")) as face:
        response = (await post(face, "go", headers=OPENAI, **own)).json()
        streamed = (await post(face, "go", stream=True, **own)).text
        await ask(face, message("go"), *response["output"], message("Once more."))
        sent = face.agent.requests[-1].body["messages"]

    call, answer = response["output"]
    assert call.keys() >= {"id", "status", "arguments"}
    assert (call["type"], call["name"]) == ("beckon:tool_call", "test_echo")
    assert (call["status"], call["output"]) == ("completed", "from the cluster")
    judged({**response, "output": [answer]})
    events = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]
    assert {event["type"] for event in events} <= set(EVENTS)
    ours = [event for event in events if event.get("item", {}).get("type") == "beckon:tool_call"]
    assert [event["type"] for event in ours] == ["response.output_item.added", "response.output_item.done"]
    assert [one["role"] for one in sent[-4:]] == ["assistant", "tool", "assistant", "user"]


async def test_a_response_stays_as_it_was_made_unless_a_request_includes_others(
    start_face: StartFace,
) -> None:
    async with start_face(ECHO, says("Done.")) as face:
        plain = await ask(face, message("go"))
        path = f"/v1/responses/{plain['id']}"
        again = (await face.http.get(path, headers=OPENAI)).json()
        shown = valid(await face.http.get(path, params={"include[]": "mcp_call"}))
        joined = await face.join(plain["id"])
        wider = await face.join(plain["id"], **{"include[]": "mcp_call"})

    assert again == plain
    assert [item["type"] for item in shown["output"]] == ["mcp_call", "message"]
    assert joined[-1]["response"] == plain
    assert "response.mcp_call.completed" in {event["type"] for event in wider}


async def test_an_approval_is_requested_and_given_by_items_with_our_slug(start_face: StartFace) -> None:
    async with start_face(asks_for(("test_danger", {})), says("Done.")) as face:
        waiting = (await post(face, "go")).json()
        (request,) = waiting["output"]
        decision = {
            "type": "beckon:approval_response",
            "approval_request_id": request["id"],
            "approve": True,
        }
        done = await ask(face, decision, previous_response_id=waiting["id"])

    assert request["type"] == "beckon:approval_request"
    assert [item["type"] for item in done["output"]] == ["message"]


async def test_reasoning_is_an_item_with_events_of_its_own(start_face: StartFace) -> None:
    thought = sse(chunk({"reasoning_content": "Hm, "}), chunk({"content": "yes"}), chunk(finish="stop"))
    async with start_face(*[Reply((thought,))] * 3) as face:
        response = await ask(face, message("Is it?"))
        plain = (await post(face, "Is it?", stream=True)).text
        openai = events_of(await post(face, "Is it?", stream=True, headers=OPENAI))

    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    events = [json.loads(line[6:]) for line in plain.splitlines() if line.startswith("data: {")]
    for event in events:
        EVENTS[event["type"]].model_validate(event)
    assert {"response.reasoning.delta", "response.reasoning.done"} <= {event["type"] for event in events}
    assert {"reasoning_text.delta", "reasoning_text.done"} <= set(kinds(openai))


async def test_an_early_end_and_a_failure_have_the_types_of_the_client(start_face: StartFace) -> None:
    cut = Reply((sse(chunk({"content": "Well"}), chunk(finish="length")),))
    broken = Reply((b"out of order",), status=500, content_type="text/plain")
    async with start_face(cut, cut, broken, broken, broken) as face:
        incomplete = await ask(face, message("go"))
        ends_early = await stream(face, message("go"))
        plain = (await post(face, "go", stream=True)).text
        openai = events_of(await post(face, "go", stream=True, headers=OPENAI))
        failed = await post(face, "go")

    assert incomplete["incomplete_details"]["reason"] == "max_output_tokens"
    assert ends_early[-1]["type"] == "response.incomplete"
    events = [json.loads(line[6:]) for line in plain.splitlines() if line.startswith("data: {")]
    for event in events:
        EVENTS[event["type"]].model_validate(event)
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    assert kinds(openai)[-2:] == ["error", "failed"]
    assert failed.status_code == 502
    spec.ErrorPayload.model_validate(failed.json()["error"])


async def test_errors_have_the_members_that_the_specification_names(start_face: StartFace) -> None:
    async with start_face() as face:
        answers: list[httpx.Response] = [
            await face.http.post("/v1/responses", json={"model": "unknown", "input": "go"}),
            await face.http.post("/v1/responses", json={"input": 7}),
            await face.http.get("/v1/responses/nothing"),
            await face.post("go", previous_response_id="resp_nothing"),
        ]

    for answer in answers:
        spec.ErrorPayload.model_validate(answer.json()["error"])
    assert [answer.status_code for answer in answers] == [404, 400, 404, 404]
