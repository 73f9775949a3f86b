"""Wrong requests at `/ag-ui`: problem documents with the field, the rule and the cure."""

from typing import Any

import pytest

from beckon_agent.api.agui.request import read_request
from beckon_agent.api.http.errors import ApiError
from tests.agent.agui.conftest import AguiClient, user

pytestmark = pytest.mark.asyncio(loop_scope="module")

FILE = {"type": "file", "value": "file-1"}
URL = {"type": "url", "value": "https://example.org/a"}


def said(*parts: object) -> dict[str, Any]:
    return {"messages": [{"id": "m", "role": "user", "content": list(parts)}]}


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"messages": []}, "there is nothing to answer; send a message"),
        ({"messages": [user(" ")]}, "there is nothing to answer"),
        ({"messages": [{"id": "m", "role": "robot", "content": "x"}]}, "messages.0"),
        ({"messages": "go"}, "messages: "),
        ({"threadId": ""}, "threadId: must have 1 to 200 characters"),
        ({"runId": "r" * 201}, "runId: must have 1 to 200 characters"),
        ({"threadId": None}, "threadId: "),
        ({"context": [{"description": "a", "value": "b"}] * 101}, "context: has 101 entries"),
        ({"tools": [{"name": "a", "description": "b"}] * 129}, "tools: has 129 entries; send at most 128"),
        ({"tools": [{"name": "find_tools", "description": "b"}]}, "tools.0.name"),
        ({"tools": [{"name": "a b", "description": "b"}]}, "tools.0"),
        ({"tools": [{"name": "a", "description": "b", "parameters": 7}]}, "tools.0"),
        (said({"type": "image", "source": FILE}), "send the bytes as a source 'data'"),
        (said({"type": "video", "source": URL}), "send a part of the type text or image"),
        (said({"type": "document", "source": URL}), "document with a source 'data'"),
    ],
)
async def test_a_request_that_cannot_be_read_is_refused_with_the_cure(
    client: AguiClient, fields: dict[str, Any], cause: str
) -> None:
    body = {"threadId": "t", "runId": "r", "messages": [user("go")], **fields}

    answer = await client.service.http.post("/ag-ui", json=body)

    assert answer.status_code == 400, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert cause in answer.json()["detail"]
    assert client.service.model.requests == []


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"messages": [user("x")] * 10_001}, "messages: has 10001 entries; send at most 10000"),
        ({"state": "x" * 100_001}, "context and state: have 1000"),
    ],
)
async def test_a_request_has_limits_below_that_of_its_body(fields: dict[str, Any], cause: str) -> None:
    body = {"threadId": "t", "runId": "r", "messages": [user("go")], **fields}

    with pytest.raises(ApiError, match=cause):
        read_request(body)


@pytest.mark.parametrize(
    ("content", "headers", "cause"),
    [
        ("[]", {"content-type": "application/json"}, "must be a JSON object"),
        ("{", {"content-type": "application/json"}, "the body is not JSON"),
        ("{}", {"content-type": "text/plain"}, "content-type: application/json"),
        ("{}", {"content-type": "application/json"}, "threadId: Field required"),
    ],
)
async def test_a_body_that_is_no_request_is_refused(
    client: AguiClient, content: str, headers: dict[str, str], cause: str
) -> None:
    answer = await client.service.http.post("/ag-ui", content=content, headers=headers)

    assert answer.status_code == 400
    assert cause in answer.json()["detail"]


async def test_an_unknown_agent_is_refused_with_the_known_ones(client: AguiClient) -> None:
    answer = await client.post("/agents/none/ag-ui")

    assert answer.status_code == 404
    assert "there is no agent 'none'" in answer.json()["detail"]
    assert "beckon, other" in answer.json()["detail"]
