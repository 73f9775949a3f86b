"""Reports of tools as log messages, for clients that request them."""

import json
from typing import Any

import pytest

from tests.agent.mcp.conftest import StartMcp
from tests.agent.mcp.mcp_server import ACCEPT, LEGACY, McpServer, request
from tests.agent.tools_for_tests import BENCH

pytestmark = pytest.mark.asyncio(loop_scope="module")
SESSION = {"accept": ACCEPT, "mcp-protocol-version": LEGACY, "mcp-session-id": "a" * 32}
ONE_STEP: dict[str, Any] = {"name": "test_steps", "arguments": {"steps": [1]}}
MESSAGE = {"level": "info", "logger": "test_steps", "data": "step 1"}
LEVEL = "io.modelcontextprotocol/logLevel"


def messages_in(stream: str) -> list[dict[str, Any]]:
    """Return the log messages of a stream, without what the SDK adds."""
    lines = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data: {")]
    found = [one["params"] for one in map(json.loads, lines) if one.get("method") == "notifications/message"]
    return [{name: one[name] for name in MESSAGE} for one in found]


async def call_in_session(server: McpServer, method: str, params: dict[str, Any]) -> str:
    BENCH.gate.set()
    return (await server.http.post("/mcp", json=request(method, params), headers=SESSION)).text


async def test_a_session_gets_messages_from_its_level_on(start_mcp: StartMcp) -> None:
    async with start_mcp() as server:
        before = await call_in_session(server, "tools/call", ONE_STEP)
        taken = json.loads(await call_in_session(server, "logging/setLevel", {"level": "info"}))
        at_info = await call_in_session(server, "tools/call", ONE_STEP)
        await call_in_session(server, "logging/setLevel", {"level": "warning"})
        at_warning = await call_in_session(server, "tools/call", ONE_STEP)

    assert taken["result"] == {}
    assert [messages_in(text) for text in (before, at_info, at_warning)] == [[], [MESSAGE], []]
    assert '"there"' in before
    assert '"there"' in at_info


async def test_a_level_without_a_session_or_unknown_is_an_error(start_mcp: StartMcp) -> None:
    headers = {"accept": ACCEPT, "mcp-protocol-version": LEGACY}
    body = request("logging/setLevel", {"level": "info"})
    async with start_mcp() as server:
        no_session = (await server.http.post("/mcp", json=body, headers=headers)).json()
        unknown = json.loads(await call_in_session(server, "logging/setLevel", {"level": "loud"}))
        since = await server.modern("logging/setLevel", level="info")

    assert (no_session["error"]["code"], unknown["error"]["code"]) == (-32602, -32602)
    assert "send the header mcp-session-id" in no_session["error"]["message"]
    assert since.status_code == 404


@pytest.mark.parametrize(
    ("meta", "expected"),
    [({}, []), ({LEVEL: "debug"}, [MESSAGE]), ({LEVEL: "info"}, [MESSAGE]), ({LEVEL: "error"}, [])],
)
async def test_a_request_of_today_has_its_level(
    start_mcp: StartMcp, meta: dict[str, str], expected: list[Any]
) -> None:
    BENCH.gate.set()
    async with start_mcp() as server:
        answer = await server.modern("tools/call", **ONE_STEP, _meta=meta)

    assert messages_in(answer.text) == expected
    assert '"there"' in answer.text
