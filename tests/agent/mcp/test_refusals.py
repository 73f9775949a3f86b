"""What is refused, and how: whom the doors shut out, and requests that are no good, as raw HTTP."""

import asyncio
import re
from typing import Any

import pytest

from beckon_agent.agents.registry import AgentHandle, UnavailableAgent
from beckon_agent.api.mcp.server import McpSettings
from beckon_runtime.origins import OriginPolicy
from tests.agent.mcp.conftest import StartMcp
from tests.agent.mcp.mcp_server import ACCEPT, BODY_LIMIT, LEGACY, MODERN, McpServer, request
from tests.agent.tools_for_tests import BENCH

pytestmark = pytest.mark.asyncio(loop_scope="module")
both = pytest.mark.parametrize("mode", [LEGACY, MODERN])
JSON = {"content-type": "application/json"}


def headers(mode: str, method: str = "tools/list") -> dict[str, str]:
    """Return the headers of a request of a revision."""
    routing = {"mcp-method": method} if mode == MODERN else {}
    return {"accept": ACCEPT, "mcp-protocol-version": mode, **JSON, **routing}


async def ask(server: McpServer, mode: str, method: str, **params: Any) -> tuple[int, dict[str, Any]]:
    """Return the status and the JSON-RPC error of an answer."""
    if mode == MODERN:
        response = await server.modern(method, **params)
    else:
        response = await server.http.post("/mcp", json=request(method, params), headers=headers(mode))
    document: dict[str, Any] = response.json()
    assert document["jsonrpc"] == "2.0"
    assert document["id"] == 1
    return response.status_code, document["error"]


@both
@pytest.mark.parametrize(
    ("body", "codes"),
    [
        (b"{", {-32700}),
        (b"[" * 100_000, {-32700}),
        (b"\xff", {-32700}),
        (b"[]", {-32600, -32602}),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', {-32600, -32602}),
        (b'{"id":1,"method":"tools/list"}', {-32600, -32602}),
    ],
)
async def test_what_is_no_request_is_refused(
    start_mcp: StartMcp, mode: str, body: bytes, codes: set[int]
) -> None:
    async with start_mcp() as server:
        response = await server.http.post("/mcp", content=body, headers=headers(mode))

    assert response.status_code == 400
    assert response.json()["error"]["code"] in codes
    assert response.headers["x-request-id"]


@both
@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/list", {"cursor": "7"}, -32602),
        ("tools/list", {"cursor": 7}, -32602),
        ("tools/call", {}, -32602),
        ("tools/call", {"name": "test_echo", "arguments": "x"}, -32602),
        ("tools/call", {"name": "x" * 500}, -32602),
        ("resources/list", {}, -32601),
        ("nonsense", {}, -32601),
    ],
)
async def test_a_request_that_cannot_be_served_gets_its_code(
    start_mcp: StartMcp, mode: str, method: str, params: dict[str, Any], code: int
) -> None:
    async with start_mcp() as server:
        status, error = await ask(server, mode, method, **params)

    assert error["code"] == code
    assert len(str(error["message"])) < 300
    assert status in (200, 400, 404)
    assert BENCH.calls == []


async def test_a_mistake_of_ours_is_not_shown(start_mcp: StartMcp, caplog: pytest.LogCaptureFixture) -> None:
    async with start_mcp() as server:
        server.catalogue.current = "no catalogue"  # type: ignore[assignment]  # what must never happen
        for mode in (LEGACY, MODERN):
            _, error = await ask(server, mode, "tools/list")
            found = re.search(
                "the log of the agent has the details, under ([0-9a-f-]+): ", str(error["message"])
            )
            assert error["code"] == -32603
            assert found
            assert f"request {found[1]}: tools/list failed" in caplog.text

    assert "AttributeError" in caplog.text


@both
async def test_a_body_that_is_too_large_is_refused(start_mcp: StartMcp, mode: str) -> None:
    async with start_mcp() as server:
        response = await server.http.post("/mcp", content=b" " * (BODY_LIMIT + 1), headers=headers(mode))

    assert response.status_code == 413


@both
async def test_an_agent_that_is_not_there_is_refused(start_mcp: StartMcp, mode: str) -> None:
    async with start_mcp() as server:
        response = await server.http.post("/mcp/other/agent", json={}, headers=headers(mode))

    assert response.status_code == 404
    message = response.json()["error"]["message"]
    assert message == "there is no agent 'other/agent'; use /mcp, or /mcp/ and one of: beckon"


class Troubled:
    """A registry whose only agent cannot take requests, or that has not been read."""

    default = "beckon"
    tools = 0

    def __init__(self, found: UnavailableAgent | None, *, complete: bool) -> None:
        self._found = found
        self.complete = complete

    def find(self, name: str) -> UnavailableAgent | None:
        return self._found if name == self.default else None

    def hosted(self) -> list[AgentHandle]:
        return []

    async def watch(self) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("registry", "shown"),
    [
        (Troubled(UnavailableAgent("beckon", "NoModel", "set one"), complete=True), "(NoModel): set one"),
        (Troubled(None, complete=False), "not all known yet"),
    ],
)
async def test_an_agent_that_is_not_ready_is_called_again_later(
    start_mcp: StartMcp, registry: Troubled, shown: str
) -> None:
    async with start_mcp() as server:
        server.service.registry = registry
        response = await server.http.post("/mcp", json={}, headers=headers(LEGACY))

    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert shown in response.json()["error"]["message"]


async def test_methods_that_mean_nothing_are_refused(start_mcp: StartMcp) -> None:
    async with start_mcp() as server:
        stateless = await server.http.get("/mcp", headers=headers(MODERN))
        put = await server.http.put("/mcp", headers=headers(LEGACY))
        plain = await server.http.get("/mcp", headers={"accept": "text/html"})
        gone = await server.http.delete("/mcp", headers={"mcp-session-id": "a"})

    assert [answer.status_code for answer in (stateless, put, gone, plain)] == [405, 405, 405, 406]


async def test_only_the_beginning_of_a_session_gets_an_id(start_mcp: StartMcp) -> None:
    client = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    accept = {"accept": ACCEPT}
    async with start_mcp() as server:
        begun = [
            await server.http.post("/mcp", json=request("initialize", client), headers=accept) for _ in "ab"
        ]
        later = await server.http.post("/mcp", json=request("tools/list", {}), headers=accept)

    assert begun[0].json()["result"]["capabilities"]["tools"] == {"listChanged": True}
    assert begun[0].json()["result"]["protocolVersion"] == LEGACY
    assert len({answer.headers["mcp-session-id"] for answer in begun}) == 2
    assert "mcp-session-id" not in later.headers


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("agent.example.com", None, 200),
        ("agent.example.com", "https://chat.example.com", 200),
        ("localhost:8080", "http://localhost:6274", 200),
        ("[::1]:8080", "http://127.0.0.1:6274", 200),
        ("agent.example.com", "https://evil.example", 403),
        ("agent.example.com", "http://localhost:6274", 403),
        ("evil.example:8080", "http://evil.example:8080", 403),
        ("localhost:8080", "null", 403),
        ("localhost:8080", "http://[", 403),
        ("localhost:8080", "http://localhost.evil.example", 403),
    ],
)
@both
async def test_pages_of_strangers_call_nothing(
    start_mcp: StartMcp, mode: str, host: str, origin: str | None, status: int
) -> None:
    settings = McpSettings(OriginPolicy.at("0.0.0.0", origins="https://chat.example.com", local_pages=True))
    given = {**headers(mode), "host": host, **({"origin": origin} if origin else {})}
    body = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    async with start_mcp(settings) as server:
        response = await server.http.post("/mcp", json=body, headers=given)

    assert response.status_code == (202 if status == 200 else status)


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://chat.example.com", True),
        ("http://localhost:6274", True),
        ("https://evil.example", False),
        ("http://localhost.evil.example", False),
    ],
)
async def test_pages_that_are_let_in_may_read_the_answers(
    start_mcp: StartMcp, origin: str, allowed: bool
) -> None:
    sent = {"access-control-request-method": "POST", "access-control-request-headers": "mcp-session-id"}
    settings = McpSettings(OriginPolicy.at("127.0.0.1", origins="https://chat.example.com", local_pages=True))
    async with start_mcp(settings) as server:
        before = await server.http.options("/mcp", headers={"origin": origin, **sent})
        after = await server.http.post(
            "/mcp", json=request("ping", {}), headers={**headers(LEGACY), "origin": origin}
        )

    if allowed:
        assert (before.status_code, after.status_code) == (200, 200)
        assert before.headers["access-control-allow-headers"] == "mcp-session-id"
        assert after.headers["access-control-allow-origin"] == origin
        assert "mcp-session-id" in after.headers["access-control-expose-headers"]
    else:
        assert (before.status_code, after.status_code) == (400, 403)
        assert "access-control-allow-origin" not in after.headers
