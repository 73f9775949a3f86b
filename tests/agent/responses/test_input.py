"""What clients may send: texts, images, sounds, files, earlier items; and clear errors for the rest."""

from typing import Any

import pytest

from beckon_agent.api.responses.items import to_messages
from beckon_agent.core.model_types import CLAIMED
from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import said
from tests.agent.scripted_model import asks_for, says

pytestmark = pytest.mark.asyncio(loop_scope="module")

PNG = "data:image/png;base64,iVBORw0KGgo="
PDF = "data:application/pdf;base64,JVBERi0="


def user(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": list(parts)}


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("hi", "hi"),
        ([{"role": "user", "content": "hi"}], "hi"),
        ([user({"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"})], "ab"),
        (
            [user({"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": PNG})],
            [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": PNG}}],
        ),
        (
            [user({"type": "input_image", "image_url": "https://x.test/a.png", "detail": "low"})],
            [{"type": "image_url", "image_url": {"url": "https://x.test/a.png", "detail": "low"}}],
        ),
        (
            [user({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}})],
            [{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}],
        ),
        (
            [user({"type": "input_file", "filename": "a.pdf", "file_data": PDF})],
            [{"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}}],
        ),
    ],
)
async def test_content_reaches_the_model_as_chat_parts(
    start_face: StartFace, given: object, sent: object
) -> None:
    async with start_face(says("Yes.")) as face:
        await face.ask(given)

    assert face.agent.requests[0].body["messages"][-1] == {"role": "user", "content": sent}


async def test_an_image_can_lead_to_a_tool_call(start_face: StartFace) -> None:
    async with start_face(asks_for(("test_echo", {"text": "cat"})), says("A cat.")) as face:
        response = await face.ask([user({"type": "input_image", "image_url": PNG})])

    assert [item["type"] for item in response["output"]] == ["mcp_call", "message"]


REFUSED_INPUTS: list[tuple[object, str | None, str]] = [
    ([user({"type": "input_image", "file_id": "file-1"})], "input.0.content.0", "image_url"),
    ([user({"type": "input_file", "file_id": "file-1"})], "input.0.content.0.file_id", "file_data"),
    (
        [user({"type": "input_file", "file_url": "https://x.test"})],
        "input.0.content.0.file_url",
        "file_data",
    ),
    ([user({"type": "input_file"})], "input.0.content.0", "file_data"),
    (
        [user({"type": "input_image", "image_url": "file:///etc/passwd"})],
        "input.0.content.0.image_url",
        "https",
    ),
    ([user({"type": "input_video"})], "input.0.content.0", "input_text"),
    ([user({"type": "input_text"})], "input.0.content.0.text", "required"),
    ([user({"type": "input_audio", "input_audio": {"data": "", "format": "ogg"}})], None, "mp3"),
    ([{"role": "user", "content": 5}], "input.0.content", "string"),
    ([{"role": "king", "content": "hi"}], "input.0.role", "assistant"),
    ([{"type": "computer_call", "id": "x"}], "input.0", "function_call_output"),
    ([{"type": "function_call_output", "call_id": "c", "output": "x"}], "input.0", "call_id"),
    ([{"type": "item_reference", "id": "msg_1"}], "input.0.id", "item itself"),
    ([{"type": "function_call", "name": "f"}], "input.0.call_id", "required"),
    ([], "input", "nothing to answer"),
    ("  ", "input", "nothing to answer"),
]

REFUSED_MEMBERS: list[tuple[dict[str, Any], str]] = [
    ({"prompt": {"id": "p"}}, "prompt"),
    ({"context_management": [{"type": "compaction"}]}, "context_management"),
    ({"top_logprobs": 21}, "top_logprobs"),
    ({"top_p": 7}, "top_p"),
    ({"reasoning": {"effort": "extreme"}}, "reasoning.effort"),
    ({"text": {"verbosity": "chatty"}}, "text.verbosity"),
    ({"text": {"format": {"type": "zzz"}}}, "text.format.type"),
    ({"parallel_tool_calls": "no way"}, "parallel_tool_calls"),
    ({"seed": 1}, "seed"),
    ({"include": ["everything"]}, "include.0"),
    ({"temperature": 3}, "temperature"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"truncation": "sometimes"}, "truncation"),
    ({"background": True, "store": False}, "store"),
    ({"previous_response_id": "resp_x", "conversation": "conv_x"}, "previous_response_id"),
    ({"previous_response_id": "resp_x"}, "previous_response_id"),
    ({"conversation": "conv_x"}, "conversation"),
    ({"metadata": {"k": "v" * 513}}, "metadata.k"),
    ({"metadata": {str(n): "" for n in range(17)}}, "metadata"),
    ({"model": "gpt-none"}, "model"),
    ({"tools": [{"type": "web_search"}]}, "tools.0.type"),
    ({"tools": [{"type": "function", "name": "no spaces"}]}, "tools.0.name"),
    ({"tools": [{"type": "function", "name": "find_tools"}]}, "tools.0.name"),
    ({"tools": [{"type": "function", "name": "f"}] * 2}, "tools.1.name"),
    ({"tool_choice": {"type": "mcp", "server_label": "elsewhere"}}, "tool_choice"),
    ({"tool_choice": {"type": "allowed_tools", "tools": [{"type": "function"}]}}, "tool_choice.tools"),
    ({"tool_choice": {"type": "allowed_tools", "tools": [{"name": "none_such"}]}}, "tool_choice"),
    ({"tool_choice": {"type": "function", "name": "none_such"}}, "tool_choice"),
    ({"text": {"format": {"type": "json_schema"}}}, "text.format"),
    (
        {"text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "zzz"}}}},
        "text.format.schema",
    ),
]


async def test_what_cannot_be_taken_is_refused_with_its_place_and_a_cure(start_face: StartFace) -> None:
    async with start_face() as face:
        for given, param, cure in REFUSED_INPUTS:
            answer = await face.post(given)
            error = answer.json()["error"]
            assert answer.status_code in (400, 404), given
            assert cure in error["message"], given
            assert param in (None, error["param"]), given

    assert face.agent.requests == []


async def test_what_a_request_may_not_say_is_refused_with_its_place(start_face: StartFace) -> None:
    async with start_face() as face:
        for body, param in REFUSED_MEMBERS:
            answer = await face.post("hi", **body)
            error = answer.json()["error"]
            assert answer.status_code in (400, 404), body
            assert error["param"] == param, body
            assert error["message"], body

    assert face.agent.requests == []


async def test_what_a_request_asks_of_the_model_reaches_it(start_face: StartFace) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    form = {"type": "json_schema", "name": "out", "schema": schema, "strict": True}
    request = {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 50,
        "parallel_tool_calls": False,
        "reasoning": {"effort": "low"},
        "text": {"format": form, "verbosity": "low"},
        "truncation": "disabled",
        "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
        "top_logprobs": 3,
        "service_tier": "auto",
        "prompt_cache_key": "k",
        "max_tool_calls": 3,
        "user": "u",
        "safety_identifier": "s",
    }
    async with start_face(says('{"a": 1}')) as face:
        response = await face.ask("hi", **request)

    body = face.agent.requests[0].body
    assert (body["temperature"], body["top_p"], body["reasoning_effort"]) == (0.5, 0.9, "low")
    assert body["max_tokens"] == 50
    assert (body["logprobs"], body["top_logprobs"], body["verbosity"]) == (True, 3, "low")
    same = ("service_tier", "prompt_cache_key", "user", "safety_identifier")
    assert {name: body[name] for name in same} == {name: request[name] for name in same}
    assert body["parallel_tool_calls"] is False
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "out", "schema": schema, "strict": True},
    }
    assert said(response) == '{"a": 1}'
    assert response["text"] == {"format": {**form, "description": None}, "verbosity": "low"}
    echoed = (
        "top_logprobs",
        "temperature",
        "top_p",
        "max_output_tokens",
        "parallel_tool_calls",
        "truncation",
        "user",
    )
    assert {name: response[name] for name in echoed} == {name: request[name] for name in echoed}


async def test_an_item_may_be_named_instead_of_sent(start_face: StartFace) -> None:
    async with start_face(asks_for(("test_echo", {"text": "x"})), says("One."), says("Two.")) as face:
        first = await face.ask("first")
        references = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
        await face.ask(
            [{"role": "user", "content": "first"}, *references, {"role": "user", "content": "more"}]
        )
        other = await face.http.post(
            "/v1/responses", json={"input": references}, headers={"x-owner": "mallory"}
        )

    sent = [message["content"] for message in face.agent.requests[-1].body["messages"]]
    assert sent == ["You are a test.", "first", None, "x", "One.", "more"]
    assert other.status_code == 404


async def test_halves_of_surrogate_pairs_break_nothing(start_face: StartFace) -> None:
    body = '{"model": "beckon", "input": "a\\ud800b", "metadata": {"k": "\\udfff"}, "user": "\\ud800"}'
    async with start_face(says("Hi.")) as face:
        answer = await face.http.post(
            "/v1/responses", content=body, headers={"content-type": "application/json"}
        )

    assert answer.status_code == 200
    assert face.agent.requests[0].body["messages"][-1]["content"] == "a\ufffdb"


async def test_one_turn_of_the_model_is_one_message() -> None:
    output = [{"type": "output_text", "text": "Let me see."}]
    items: list[dict[str, Any]] = [
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": output},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "c2", "name": "g", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {
            "type": "function_call_output",
            "call_id": "c2",
            "output": [{"type": "input_text", "text": "2"}, {"type": "input_image", "image_url": PNG}],
        },
        {"type": "message", "role": "assistant", "content": "Done."},
    ]

    called, one, two, shown, done = to_messages(items, alone=True)

    assert (called["content"], called["reasoning_content"]) == ("Let me see.", "hm")
    assert [call["id"] for call in called["tool_calls"]] == ["c1", "c2"]
    assert [one["content"], two["content"]] == ["1", "2"]
    assert shown == {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG}}]}
    assert done == {"role": "assistant", "content": "Done.", CLAIMED: True}
