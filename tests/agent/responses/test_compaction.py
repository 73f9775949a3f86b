"""Compaction: a conversation becomes one item, by the types of OpenAI and of Open Responses."""

import json
from typing import Any

import openresponses_types.types as spec
import pytest
from openai.types.responses import CompactedResponse

from tests.agent.responses.conftest import StartFace
from tests.agent.scripted_model import Reply, asks_for, chunk, says, sse

pytestmark = pytest.mark.asyncio(loop_scope="module")

HISTORY: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": "We launch on Tuesday."},
    {"type": "message", "role": "assistant", "content": "Understood: on Tuesday."},
]
COUNTED = chunk(usage={"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10})
SUMMARY = Reply((sse(chunk({"content": "Launch: Tuesday, größer."}), chunk(finish="stop"), COUNTED),))


async def test_a_conversation_is_compacted_and_goes_on_from_its_summary(start_face: StartFace) -> None:
    async with start_face(SUMMARY, says("On Tuesday.")) as face:
        request = {"model": "beckon", "input": HISTORY, "prompt_cache_key": "k", "instructions": "Keep days."}
        answer = await face.http.post("/v1/responses/compact", json=request)
        compacted = answer.json()
        question = {"type": "message", "role": "user", "content": "When?"}
        response = await face.ask([*compacted["output"], question])
        sent_request, followed = face.agent.requests

    assert answer.status_code == 200, answer.text
    spec.CompactResource.model_validate(compacted)
    CompactedResponse.model_validate_json(answer.content, strict=True)
    assert [item["type"] for item in compacted["output"]] == ["compaction"]
    assert compacted["usage"]["total_tokens"] == 10
    assert "tools" not in sent_request.body
    assert "Keep days." in json.dumps(sent_request.body["messages"])
    assert "We launch on Tuesday." in json.dumps(sent_request.body["messages"])
    assert "Launch: Tuesday, größer." in json.dumps(followed.body["messages"], ensure_ascii=False)
    assert "We launch on Tuesday." not in json.dumps(followed.body["messages"])
    assert response["status"] == "completed"


async def test_a_stored_response_is_compacted_with_its_calls_by_openais_package(
    start_face: StartFace,
) -> None:
    echo = asks_for(("test_echo", {"text": "from the cluster"}))
    async with start_face(echo, says("Done."), SUMMARY) as face:
        first = await face.ask("go")
        compacted = await face.openai.responses.compact(model="beckon", previous_response_id=first["id"])
        sent = json.dumps(face.agent.requests[-1].body["messages"])

    assert compacted.output[0].type == "compaction"
    assert "from the cluster" in sent
    assert "Done." in sent


@pytest.mark.parametrize(
    ("body", "status", "cause"),
    [
        ({"input": HISTORY}, 400, "model"),
        ({"model": "missing", "input": HISTORY}, 404, "missing"),
        ({"model": "beckon"}, 400, "nothing to compact"),
        ({"model": "beckon", "input": HISTORY, "previous_response_id": "resp_none"}, 404, "resp_none"),
        ({"model": "beckon", "input": HISTORY}, 502, "no whole summary"),
    ],
)
async def test_what_cannot_be_compacted_has_its_cause(
    start_face: StartFace, body: dict[str, Any], status: int, cause: str
) -> None:
    cut = Reply((sse(chunk({"content": "Well"}), chunk(finish="length")),))
    async with start_face(cut) as face:
        answer = await face.http.post("/v1/responses/compact", json=body)

    assert answer.status_code == status
    assert cause in answer.json()["error"]["message"]


async def test_a_response_of_another_caller_is_not_compacted(start_face: StartFace) -> None:
    async with start_face(says("A secret.")) as face:
        first = await face.ask("go")
        body = {"model": "beckon", "previous_response_id": first["id"]}
        answer = await face.http.post("/v1/responses/compact", json=body, headers={"x-owner": "mallory"})

    assert answer.status_code == 404


async def test_only_posting_is_offered(start_face: StartFace) -> None:
    async with start_face() as face:
        answer = await face.http.options("/v1/responses/compact")

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("content", ["not base64!", "//8="])
async def test_a_compaction_of_others_is_refused(start_face: StartFace, content: str) -> None:
    async with start_face() as face:
        answer = await face.post([{"type": "compaction", "encrypted_content": content}])

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "input.0"
