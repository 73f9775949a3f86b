"""Wrong requests, each answered in the shape of its binding, with the cause and the cure."""

import json
from typing import Any

import httpx
import pytest

from tests.agent.auth.closed_service import ClosedService
from tests.agent.scripted_model import says

pytestmark = pytest.mark.asyncio(loop_scope="module")
VERSION = {"a2a-version": "1.0"}
TEXT = [{"text": "go"}]


def message(**members: Any) -> dict[str, Any]:
    """Return the parameters of a message with some of its members replaced."""
    return {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": TEXT, **members}}


async def post(service: ClosedService, body: object, path: str = "", **headers: str) -> httpx.Response:
    content = body if isinstance(body, str) else json.dumps(body)
    sent = {"content-type": "application/json", **VERSION, **headers}
    return await service.http.post(f"/agents/beckon/a2a{path}", content=content, headers=sent)


def call(method: str, params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}


WRONG_BODIES = [
    ("[]", -32600, ""),
    ([call("GetTask", {"id": "t"})], -32600, "Batch requests are not supported"),
    ({"id": 7, "method": "GetTask"}, -32600, "Missed fields: {'jsonrpc'}"),
    (call("SendMessages", {}), -32601, "send one of: SendMessage, SendStreamingMessage"),
]
WRONG_CALLS = [
    ("SendMessage", {"message": "go"}, -32602, "message"),
    ("SendMessage", {}, -32602, "message: Field is required"),
    ("SendMessage", message(parts=[]), -32602, "message.parts: Field must contain at least one"),
    ("SendMessage", message(parts=[{}]), -32602, "one of 'text', 'data', 'raw' and 'url'"),
    ("SendMessage", message(parts=[{"text": " "}]), -32602, "there is nothing to answer"),
    ("SendMessage", message(role="ROLE_AGENT"), -32602, "has the role ROLE_USER"),
    ("SendMessage", message(messageId="m" * 301), -32602, "message.messageId: at most 300 characters"),
    ("SendMessage", message(contextId="c" * 301), -32602, "message.contextId: at most 300 characters"),
    ("SendMessage", message(taskId="none"), -32001, "there is no task 'none'; leave out 'taskId'"),
    ("SendMessage", message(parts=[{"url": "http://10.0.0.1/"}]), -32005, "send the bytes as 'raw'"),
    (
        "SendMessage",
        {**message(), "configuration": {"acceptedOutputModes": ["image/png"]}},
        -32005,
        "accept 'text/plain'",
    ),
    ("SendStreamingMessage", message(parts=[]), -32602, "message.parts"),
    ("GetTask", {"id": "none"}, -32001, "there is no task 'none'"),
    ("GetTask", {"id": "none", "historyLength": -1}, -32602, "history length must be non-negative"),
    ("CancelTask", {"id": "none"}, -32001, "there is no task 'none'"),
    ("SubscribeToTask", {"id": "none"}, -32001, "there is no task 'none'"),
    ("ListTasks", {"pageSize": 1000}, -32602, "page size"),
    ("ListTasks", {"pageToken": "none"}, -32602, "begin again without it"),
    ("ListTasks", {"status": "done"}, -32602, "'done' is no state; it is one of TASK_STATE_"),
    ("GetExtendedAgentCard", {}, -32007, "there is no other card"),
]


@pytest.mark.parametrize(("body", "code", "cause"), WRONG_BODIES)
async def test_a_body_that_is_no_call_is_refused_with_the_cure(
    service: ClosedService, body: object, code: int, cause: str
) -> None:
    answer = await post(service, body)

    assert answer.status_code == 200
    assert answer.json()["error"]["code"] == code
    assert cause in answer.json()["error"]["message"]
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(("method", "params", "code", "cause"), WRONG_CALLS)
async def test_a_wrong_call_is_refused_with_the_cure(
    service: ClosedService, method: str, params: object, code: int, cause: str
) -> None:
    answer = await post(service, call(method, params))

    assert (answer.status_code, answer.json()["id"]) == (200, 7)
    assert answer.json()["error"]["code"] == code
    assert cause in answer.json()["error"]["message"]
    assert service.model.requests == []


@pytest.mark.parametrize("unset", ["", "TASK_STATE_UNSPECIFIED", "UNRECOGNIZED"])
async def test_a_status_that_the_client_left_unset_lists_all_tasks(
    service: ClosedService, unset: str
) -> None:
    service.model.script[:] = [says("1")]
    await post(service, call("SendMessage", message()))

    rpc = await post(service, call("ListTasks", {"status": unset}))
    rest = await service.http.get("/agents/beckon/a2a/tasks", params={"status": unset}, headers=VERSION)

    assert rpc.json()["result"]["totalSize"] == rest.json()["totalSize"] == 1


@pytest.mark.parametrize(
    ("path", "body", "status", "cause"),
    [
        ("/message:send", message(parts=[]), 400, "message.parts"),
        ("/message:stream", message(parts=[]), 400, "message.parts"),
        ("/tasks/none:cancel", {}, 404, "there is no task 'none'"),
        ("/messages", {}, 404, "there is nothing at /messages"),
    ],
)
async def test_http_and_json_has_an_error_of_its_own_shape(
    service: ClosedService, path: str, body: object, status: int, cause: str
) -> None:
    answer = await post(service, body, path)

    assert answer.status_code == status
    assert answer.json()["error"]["code"] == status
    assert cause in answer.json()["error"]["message"]


async def test_a_request_without_a_version_is_one_of_0_3(service: ClosedService) -> None:
    answer = await service.http.post("/agents/beckon/a2a", json=call("GetTask", {"id": "t"}))

    assert answer.json()["error"]["code"] == -32009
    assert "Expected version '1.0'" in answer.json()["error"]["message"]


@pytest.mark.parametrize("body", ["{", "[" * 100_000, '{"a": NaN}'])
@pytest.mark.parametrize(("path", "code"), [("", -32700), ("/message:send", 400)])
async def test_a_body_that_is_no_json_is_refused(
    service: ClosedService, body: str, path: str, code: int
) -> None:
    answer = await post(service, body, path)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert answer.json()["error"]["message"].startswith("the body is not JSON: ")


@pytest.mark.parametrize("path", ["", "/message:send"])
async def test_a_body_of_another_type_than_json_is_refused(service: ClosedService, path: str) -> None:
    answer = await post(service, message(), path, **{"content-type": "text/plain"})

    assert answer.status_code == 415
    assert "content-type: application/json" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/.well-known/agent-card.json", "/a2a", "/a2a/message:send"])
async def test_an_unknown_agent_is_named_with_those_that_exist(service: ClosedService, path: str) -> None:
    answer = await service.http.request(
        "GET" if path.endswith("json") else "POST", f"/agents/none{path}", json={}
    )

    assert answer.status_code == 404
    assert "there is no agent 'none'" in answer.text
    assert "beckon, other" in answer.text


async def test_a_message_to_a_task_that_has_ended_is_refused(service: ClosedService) -> None:
    service.model.script[:] = [says("done")]
    made = (await post(service, call("SendMessage", message()))).json()["result"]["task"]

    ended = await post(service, call("SendMessage", message(messageId="m2", taskId=made["id"])))
    elsewhere = await post(
        service, call("SendMessage", message(messageId="m2", taskId=made["id"], contextId="c"))
    )

    assert ended.json()["error"]["code"] == -32004
    assert "send the message with its 'contextId' and without 'taskId'" in ended.json()["error"]["message"]
    assert elsewhere.json()["error"]["code"] == -32602


async def test_a_host_that_is_no_name_does_not_get_into_a_card(service: ClosedService) -> None:
    answer = await service.http.get("/.well-known/agent-card.json", headers={"host": 'x"<y>'})

    assert answer.json()["supportedInterfaces"][0]["url"] == "/agents/beckon/a2a"
