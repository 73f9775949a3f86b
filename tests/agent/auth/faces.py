"""Every protocol by which a caller begins something, and how what it stores is read and changed.

The tests of access, ownership and quotas run over this table. A package below `beckon_agent.api` that is not
in it fails the build: see `test_every_face.py`.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

Headers = Mapping[str, str]
StoredRequest = tuple[str, str, Any]
"""Method, path and body of a request for a stored run."""

A2A = {"a2a-version": "1.0"}
MCP = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}

NO_FACES = {"http": "common code", "runs": "begins nothing, and reads the runs of every face"}
"""The packages that are not in the table, with the reason."""


@dataclass(frozen=True, slots=True)
class Face:
    """One protocol: a request that begins a run or a call, and requests for the run that it stored.

    The first of these shows the answer to its owner. A face without any stores nothing.
    """

    begin: Callable[[httpx.AsyncClient, str, Headers], Awaitable[httpx.Response]]
    requests_of: Callable[[str], Sequence[StoredRequest]] = lambda _: ()
    refuses_later: Callable[[httpx.Response], bool] = lambda answer: (
        answer.status_code == 429 and 0 < int(answer.headers["retry-after"]) <= 3600
    )


async def _begin_chat(http: httpx.AsyncClient, agent: str, headers: Headers) -> httpx.Response:
    body = {"model": agent, "messages": [{"role": "user", "content": "go"}], "store": True}
    return await http.post("/v1/chat/completions", json=body, headers=headers)


def _requests_of_chat(run: str) -> Sequence[StoredRequest]:
    path = f"/v1/chat/completions/{run}"
    return [("GET", path, None), ("GET", f"{path}/messages", None), ("DELETE", path, None)]


async def _begin_response(http: httpx.AsyncClient, agent: str, headers: Headers) -> httpx.Response:
    return await http.post("/v1/responses", json={"model": agent, "input": "go"}, headers=headers)


def _requests_of_response(run: str) -> Sequence[StoredRequest]:
    path = f"/v1/responses/{run}"
    followed = {"model": "open", "input": "go on", "previous_response_id": run}
    return [
        ("GET", path, None),
        ("GET", f"{path}/input_items", None),
        ("POST", f"{path}/cancel", None),
        ("DELETE", path, None),
        ("POST", "/v1/responses", followed),
    ]


async def _begin_mcp(http: httpx.AsyncClient, agent: str, headers: Headers) -> httpx.Response:
    call = {"name": "test_echo", "arguments": {"text": "a"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    return await http.post(f"/mcp/{agent}", json=body, headers={**headers, **MCP})


async def _begin_event(http: httpx.AsyncClient, agent: str, headers: Headers) -> httpx.Response:
    event = {"specversion": "1.0", "id": secrets.token_hex(8), "source": "/test", "type": "test.question"}
    attributes = {f"ce-{name}": value for name, value in event.items()}
    return await http.post(f"/events/{agent}", json={"question": "go"}, headers={**headers, **attributes})


def _message(**members: str) -> dict[str, Any]:
    message = {"messageId": secrets.token_hex(8), "role": "ROLE_USER", "parts": [{"text": "go"}], **members}
    return {"message": message}


def _call(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def _begin_a2a(http: httpx.AsyncClient, agent: str, headers: Headers) -> httpx.Response:
    body = _call("SendMessage", _message())
    return await http.post(f"/agents/{agent}/a2a", json=body, headers={**headers, **A2A})


def _requests_of_a2a(run: str) -> Sequence[StoredRequest]:
    path, task = "/agents/open/a2a", f"/agents/open/a2a/tasks/{run}"
    methods = ("GetTask", "CancelTask", "SubscribeToTask")
    return [
        ("GET", task, None),
        ("POST", f"{task}:cancel", {}),
        ("GET", f"{task}:subscribe", None),
        ("GET", f"{path}/tasks", None),
        ("POST", f"{path}/message:send", _message(taskId=run)),
        *(("POST", path, _call(method, {"id": run})) for method in methods),
        ("POST", path, _call("SendMessage", _message(taskId=run))),
        ("POST", path, _call("SendStreamingMessage", _message(taskId=run))),
    ]


async def _begin_agui(http: httpx.AsyncClient, agent: str, headers: Headers) -> httpx.Response:
    messages = [{"id": "m", "role": "user", "content": "go"}]
    body = {"threadId": secrets.token_hex(8), "runId": "r", "messages": messages}
    return await http.post(f"/agents/{agent}/ag-ui", json=body, headers=headers)


FACES = {
    "a2a": Face(_begin_a2a, _requests_of_a2a),
    # The protocol reads no run again; that an answer to an interrupt is its owner's has a test of its own.
    "agui": Face(_begin_agui, lambda run: [("GET", f"/runs/{run}", None)]),
    "chat": Face(_begin_chat, _requests_of_chat),
    "events": Face(_begin_event, lambda run: [("GET", f"/runs/{run}", None)]),
    "mcp": Face(
        _begin_mcp,
        # An error that the model may read is a result.
        refuses_later=lambda answer: '"isError":true' in answer.text and "quota of 1" in answer.text,
    ),
    "responses": Face(_begin_response, _requests_of_response),
}
