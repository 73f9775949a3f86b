"""Batches of messages, which the revision 2025-03-26 has."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.agent.mcp.conftest import StartMcp
from tests.agent.mcp.mcp_server import ACCEPT, LEGACY, McpServer, request

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def server(start_mcp: StartMcp) -> AsyncIterator[McpServer]:
    async with start_mcp() as running:
        yield running


async def send_batch(server: McpServer, messages: object, revision: str = "2025-03-26") -> httpx.Response:
    headers = {"accept": ACCEPT, "mcp-protocol-version": revision, "content-type": "application/json"}
    content = messages if isinstance(messages, bytes) else json.dumps(messages).encode()
    return await server.http.post("/mcp", content=content, headers=headers)


def call_echo(text: Any, request_id: int) -> dict[str, Any]:
    return request("tools/call", {"name": "test_echo", "arguments": {"text": text}}, request_id)


async def test_each_request_of_a_batch_has_its_answer_and_a_notification_none(server: McpServer) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}

    answer = await send_batch(
        server, [call_echo("a", 1), note, request("tools/list", {}, 2), request("no/method", {}, 3)]
    )

    assert answer.status_code == 200
    found = {one["id"]: one for one in answer.json()}
    assert found.keys() == {1, 2, 3}
    assert found[1]["result"]["content"][0]["text"] == "a"
    assert "test_echo" in {tool["name"] for tool in found[2]["result"]["tools"]}
    assert found[3]["error"]["code"] == -32601


async def test_a_batch_of_notifications_is_accepted_without_an_answer(server: McpServer) -> None:
    answer = await send_batch(server, [{"jsonrpc": "2.0", "method": "notifications/initialized"}])

    assert (answer.status_code, answer.content) == (202, b"")


@pytest.mark.parametrize(
    ("messages", "cause"),
    [
        (b"[" * 100_000, "the batch is no JSON"),
        ([], "a batch has 1 to 50 messages, not 0"),
        ([call_echo("a", n) for n in range(51)], "a batch has 1 to 50 messages, not 51"),
        ([request("initialize", {})], "'initialize' cannot be part of a batch"),
    ],
)
async def test_a_batch_that_cannot_be_answered_is_refused(
    server: McpServer, messages: object, cause: str
) -> None:
    answer = await send_batch(server, messages)

    assert answer.status_code == 400
    assert cause in answer.json()["error"]["message"]


async def test_a_message_that_is_none_is_an_error_beside_the_answers(server: McpServer) -> None:
    answer = await send_batch(server, [1, call_echo("a", 1)])

    assert answer.status_code == 200
    wrong, right = answer.json()
    assert wrong["error"]["code"] in (-32600, -32602, -32700)
    assert right["id"] == 1


async def test_other_revisions_have_no_batches(server: McpServer) -> None:
    answer = await send_batch(server, [call_echo("a", 1)], LEGACY)

    assert answer.status_code == 400


async def test_a_long_integer_in_a_batch_keeps_its_digits(server: McpServer) -> None:
    answer = await send_batch(server, [call_echo("a", 2**70 + 1)])

    assert [one["id"] for one in answer.json()] == [2**70 + 1]
