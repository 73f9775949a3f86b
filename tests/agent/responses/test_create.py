"""Creating responses: whole and streamed, kept and not, one after another."""

import json

import pytest

from beckon_agent.core.run_types import Limits
from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import kinds, said
from tests.agent.running_agent import Setup
from tests.agent.scripted_model import Reply, asks_for, chunk, refuses, says, streamed

pytestmark = pytest.mark.asyncio(loop_scope="module")

USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
ECHO = asks_for(("test_echo", {"text": "x", "count": 2}))

REQUIRED = {
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "incomplete_details",
    "model",
    "previous_response_id",
    "instructions",
    "output",
    "error",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "user",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
}
"""The members that Open Responses requires of every response."""


def thinks_and_says(thought: str, text: str) -> Reply:
    return streamed(
        chunk({"reasoning_content": thought}), chunk({"content": text}), chunk(finish="stop"), USAGE
    )


async def test_an_answer_is_a_message_item(start_face: StartFace) -> None:
    async with start_face(says("He", "llo.")) as face:
        response = await face.ask("hi", metadata={"a": "b"}, instructions="Be brief.")

    (item,) = response["output"]
    assert item["type"] == "message"
    assert item["content"] == [{"type": "output_text", "text": "Hello.", "annotations": [], "logprobs": []}]
    assert (response["status"], response["model"], response["metadata"]) == (
        "completed",
        "beckon",
        {"a": "b"},
    )
    assert response["completed_at"] >= response["created_at"]
    assert response["instructions"] == "Be brief."


async def test_every_member_that_open_responses_requires_is_there(start_face: StartFace) -> None:
    async with start_face(says("Hi."), says("Hi.")) as face:
        whole = await face.ask()
        events = await face.stream()

    for document in (whole, events[0]["response"], events[-1]["response"]):
        assert document.keys() >= REQUIRED
        assert isinstance(document["created_at"], int)
    for item in whole["output"]:
        assert {"id", "type", "status"} <= item.keys()


async def test_a_stream_shows_items_parts_and_deltas_in_their_order(start_face: StartFace) -> None:
    async with start_face(thinks_and_says("hm", "Yes.")) as face:
        events = await face.stream("hi")

    assert kinds(events) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    final = events[-1]["response"]
    assert [item["type"] for item in final["output"]] == ["reasoning", "message"]
    assert said(final) == "Yes."
    assert final["usage"]["total_tokens"] == 10


async def test_a_call_of_the_cluster_is_an_item_with_arguments_and_output(start_face: StartFace) -> None:
    async with start_face(ECHO, says("Done.")) as face:
        events = await face.stream("go")

    assert kinds(events)[2:8] == [
        "output_item.added",
        "mcp_call.in_progress",
        "mcp_call_arguments.delta",
        "mcp_call_arguments.done",
        "mcp_call.completed",
        "output_item.done",
    ]
    call, message = events[-1]["response"]["output"]
    assert (call["type"], call["server_label"], call["name"]) == ("mcp_call", "cluster", "test_echo")
    assert call["arguments"] == '{"text":"x","count":2}'
    assert (call["status"], call["output"], call["error"]) == ("completed", "xx", None)
    assert message["content"][0]["text"] == "Done."


async def test_a_failed_call_shows_why(start_face: StartFace) -> None:
    async with start_face(asks_for(("test_fail", {"kind": "refuse"})), says("Sorry.")) as face:
        events = await face.stream("go")

    assert "mcp_call.failed" in kinds(events)
    call = events[-1]["response"]["output"][0]
    assert (call["status"], call["output"]) == ("failed", None)
    assert call["error"]["type"] == "mcp_tool_execution_error"
    assert "asked to refuse" in call["error"]["content"]["message"]


@pytest.mark.parametrize(
    "script",
    [
        [says("He", "llo.")],
        [thinks_and_says("hm", "Yes.")],
        [ECHO, says("Done.")],
        [streamed(chunk({"content": "Let me see."}), chunk(finish="stop"))],
        [asks_for(("test_echo", {"text": "a"}), ("test_fail", {"kind": "refuse"})), ECHO, says("Done.")],
        [ECHO, ECHO, ECHO],
        [streamed(chunk({"content": "cut of"}), chunk(finish="length"), USAGE)],
    ],
)
async def test_whole_streamed_and_stored_are_the_same(start_face: StartFace, script: list[Reply]) -> None:
    async with start_face(*script, *script, setup=Setup(limits=Limits(steps=3))) as face:
        whole = await face.ask("go")
        events = await face.stream("go")
        streamed_ = events[-1]["response"]
        stored = [await face.get(whole["id"]), await face.get(streamed_["id"])]
        again = await face.join(streamed_["id"])

    assert stored == [whole, streamed_]
    assert again == events

    def shape(document: dict[str, object]) -> object:
        output = document["output"]
        assert isinstance(output, list)
        items = [{key: value for key, value in item.items() if key != "id"} for item in output]
        return document["status"], document["incomplete_details"], document["usage"], items

    assert shape(whole) == shape(streamed_)


@pytest.mark.parametrize(
    ("finish", "reason"), [("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
async def test_a_response_that_is_cut_is_incomplete(start_face: StartFace, finish: str, reason: str) -> None:
    async with start_face(streamed(chunk({"content": "cut of"}), chunk(finish=finish))) as face:
        response = await face.ask()

    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": reason})
    assert response["output"][-1]["status"] == "incomplete"
    assert response["completed_at"] is None


async def test_a_response_whose_stream_ended_in_the_middle_is_incomplete(start_face: StartFace) -> None:
    broken = streamed(chunk({"content": "The answer is"}), done=False)
    async with start_face(broken, broken) as face:
        whole = await face.ask()
        events = await face.stream("go")
        stored = await face.get(whole["id"])

    assert events[-1]["type"] == "response.incomplete"
    assert stored == whole
    for response in (whole, events[-1]["response"]):
        assert (response["status"], response["completed_at"]) == ("incomplete", None)
        assert response["incomplete_details"] == {"reason": "max_output_tokens", "ending": "incomplete"}
        assert [(said(response), item["status"]) for item in response["output"]] == [
            ("The answer is", "incomplete")
        ]


async def test_a_run_at_its_limit_is_incomplete_and_says_which(start_face: StartFace) -> None:
    async with start_face(ECHO, setup=Setup(limits=Limits(steps=1))) as face:
        response = await face.ask()

    assert (response["status"], response["incomplete_details"]) == ("incomplete", {"reason": "max_messages"})
    assert "has reached its limit of requests to the model" in said(response)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("This model's maximum context length is 8192 tokens", "context_length_exceeded"),
        ("this model does not support audio input", "unsupported_content"),
    ],
)
async def test_what_the_model_can_never_take_is_the_clients_error(
    said: str, code: str, start_face: StartFace
) -> None:
    async with start_face(refuses(400, said)) as face:
        response = await face.post()

    assert response.status_code == 400
    assert response.json()["error"]["code"] == code
    assert said in response.json()["error"]["message"]


async def test_a_model_that_fails_at_once_is_an_error(start_face: StartFace) -> None:
    async with start_face(refuses(400, "no such thing")) as face:
        answer = await face.post()

    assert answer.status_code == 502
    assert "no such thing" in answer.json()["error"]["message"]


async def test_what_a_run_did_before_it_failed_is_not_hidden_by_an_error(start_face: StartFace) -> None:
    async with start_face(ECHO, refuses(400, "no more"), ECHO, refuses(400, "no more")) as face:
        whole = await face.ask()
        events = await face.stream()

    assert whole["status"] == "failed"
    assert whole["error"]["code"] == "server_error"
    assert "no more" in whole["error"]["message"]
    assert whole["output"][0]["output"] == "xx"
    assert kinds(events)[-2:] == ["error", "failed"]


async def test_a_conversation_goes_on_from_a_response(start_face: StartFace) -> None:
    async with start_face(ECHO, says("One."), says("Two."), says("Three.")) as face:
        first = await face.ask("first", instructions="Only now.")
        second = await face.ask("second", previous_response_id=first["id"])
        third = await face.ask("third", previous_response_id=second["id"])
        request = [message["content"] for message in face.agent.requests[-1].body["messages"]]

    assert said(third) == "Three."
    assert third["previous_response_id"] == second["id"]
    assert request == [
        "You are a test.", "first", None, "xx", "One.", "second", "Two.", "third",
    ]  # fmt: skip


async def test_items_that_are_sent_back_verbatim_say_the_same_to_the_model(start_face: StartFace) -> None:
    turn = asks_for(("test_echo", {"text": "a"}), ("test_fail", {"kind": "refuse"}))
    async with start_face(turn, says("One."), says("Two."), says("Three.")) as face:
        first = await face.ask("first")
        await face.ask("second", previous_response_id=first["id"])
        history = [
            {"role": "user", "content": "first"},
            *first["output"],
            {"role": "user", "content": "second"},
        ]
        await face.ask(history, store=False)
        stored, sent = (request.body["messages"] for request in face.agent.requests[-2:])

    def plain(messages: list[dict[str, object]]) -> list[object]:
        return [(message["role"], message["content"]) for message in messages]

    assert len(plain(stored)) == 7
    assert plain(stored) == plain(sent)


async def test_a_response_that_is_not_stored_is_gone(start_face: StartFace) -> None:
    async with start_face(says("Hi.")) as face:
        response = await face.ask(store=False)
        again = await face.http.get(f"/v1/responses/{response['id']}")
        after = await face.post("more", previous_response_id=response["id"])

    assert response["store"] is False
    assert response["status"] == "completed"
    assert [again.status_code, after.status_code] == [404, 404]
    assert again.json()["error"]["code"] == "response_not_found"


async def test_no_one_sees_the_responses_of_others(start_face: StartFace) -> None:
    async with start_face(says("Hi."), says("Hi.")) as face:
        mine = await face.ask()
        path = f"/v1/responses/{mine['id']}"
        other = {"x-owner": "mallory"}
        answers = [
            await face.http.get(path, headers=other),
            await face.http.get(f"{path}/input_items", headers=other),
            await face.http.post(f"{path}/cancel", headers=other),
            await face.http.delete(path, headers=other),
            await face.http.post(
                "/v1/responses", json={"input": "x", "previous_response_id": mine["id"]}, headers=other
            ),
        ]
        assert (await face.http.get(path)).status_code == 200

    assert {answer.status_code for answer in answers} == {404}
    assert {answer.json()["error"]["code"] for answer in answers} == {"response_not_found"}


async def test_a_deleted_response_is_gone(start_face: StartFace) -> None:
    async with start_face(says("Hi.")) as face:
        response = await face.ask()
        deleted = await face.http.delete(f"/v1/responses/{response['id']}")
        again = await face.http.delete(f"/v1/responses/{response['id']}")

    assert deleted.json() == {"id": response["id"], "object": "response", "deleted": True}
    assert again.status_code == 404


async def test_a_405_names_all_methods_of_the_path(start_face: StartFace) -> None:
    async with start_face() as face:
        answer = await face.http.patch("/v1/responses/nothing")
        conversation = await face.http.put("/v1/conversations/nothing")

    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET, HEAD")
    assert (conversation.status_code, conversation.headers["allow"]) == (405, "DELETE, GET, HEAD, POST")


async def test_a_long_integer_of_a_result_stays_whole_in_the_store(start_face: StartFace) -> None:
    async with start_face(asks_for(("test_measure", {"digits": 30})), says("Done.")) as face:
        whole = await face.ask("go")
        stored = await face.get(whole["id"])

    (call,) = [item for item in stored["output"] if item["type"] == "mcp_call"]
    assert json.loads(call["output"]) == {"long": int("1" * 30)}
    assert stored == whole


async def test_counting_tokens_is_refused_by_name(start_face: StartFace) -> None:
    async with start_face() as face:
        answer = await face.http.post("/v1/responses/input_tokens", json={"model": "beckon", "input": "go"})

    assert answer.status_code == 501
    assert "does not count tokens" in answer.json()["error"]["message"]
