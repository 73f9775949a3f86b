"""Messages during a request: progress, changes of the tools, and cancellation by the client."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from dataclasses import replace

import httpx
import pytest
from mcp.client import IncomingMessage
from mcp.client.subscriptions import Subscription
from mcp.shared.exceptions import MCPError
from mcp_types import ToolListChangedNotification

from beckon_agent.api.http.streaming import StreamPace
from beckon_agent.api.mcp.server import McpSettings
from beckon_contract.catalogue.builder import Catalogue
from tests.agent.event_platform import EventPlatform
from tests.agent.mcp.conftest import StartMcp
from tests.agent.mcp.mcp_server import ACCEPT, LEGACY, MODERN, McpServer, enveloped, request, routing
from tests.agent.tools_for_tests import BENCH
from tests.patience import PATIENCE, eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")
both = pytest.mark.parametrize("mode", [LEGACY, MODERN])
SESSION = {"mcp-session-id": "a" * 32}
LISTEN = {"accept": "text/event-stream", "mcp-protocol-version": LEGACY}


def without_echo(server: McpServer) -> Catalogue:
    """Return the catalogue after one EventType was deleted."""
    tools = dict(server.catalogue.current.tools)
    del tools["test_echo"]
    return Catalogue(tools)


async def nothing_is_running(server: McpServer, platform: EventPlatform) -> None:
    """Wait until neither the agent nor the shim waits for a tool any more."""

    async def idle() -> bool:
        return not server.service.running and await platform.metric("waiting_calls") == 0

    await eventually(idle)


@both
async def test_a_call_of_which_nothing_is_received_has_to_go_on(start_mcp: StartMcp, mode: str) -> None:
    shown: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        shown.append((progress, total, message))
        if len(shown) == 3:
            BENCH.gate.set()

    async with start_mcp(McpSettings(report_every=0.05)) as server, server.client(mode) as client:
        result = await client.call_tool("test_wait", {}, progress_callback=note)

    assert not result.is_error
    assert [progress for progress, _, _ in shown] == sorted({progress for progress, _, _ in shown})
    _, total, message = shown[0]
    assert total is None
    assert re.fullmatch(r"test_wait has not answered yet, after \d seconds", message or "")
    assert shown[-1][0] < 0.001


@both
async def test_a_client_gets_what_the_tool_reports_in_its_own_numbers(start_mcp: StartMcp, mode: str) -> None:
    shown: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        shown.append((progress, total, message))
        BENCH.gate.set()

    async with start_mcp(McpSettings(report_every=3600)) as server, server.client(mode) as client:
        result = await client.call_tool("test_steps", {"steps": [1, 2, 2, 3]}, progress_callback=note)

    assert not result.is_error
    assert shown == [
        (1, 4, "step 1"),
        (2, 4, "step 2"),
        (2.000002, 4, "step 2"),
        (3, 4, "step 3"),
    ]


@both
async def test_the_first_three_reports_are_sent_with_their_values(start_mcp: StartMcp, mode: str) -> None:
    shown: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        shown.append(progress)
        BENCH.gate.set()

    async with start_mcp() as server, server.client(mode) as client:
        await client.call_tool("test_steps", {"steps": [0, 1, 3]}, progress_callback=note)

    assert shown == [0, 1, 3]


async def test_signs_of_life_come_between_reports_and_do_not_run_ahead_of_them(start_mcp: StartMcp) -> None:
    shown: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        shown.append((progress, total, message))
        if len(shown) % 3 == 0:
            BENCH.gate.set()

    async with start_mcp(McpSettings(report_every=0.05)) as server, server.client(LEGACY) as client:
        await client.call_tool("test_steps", {"steps": [1, 2]}, progress_callback=note)

    values = [progress for progress, _, _ in shown]
    assert values == sorted(set(values))
    assert {1, 2} <= set(values)


@both
async def test_a_client_that_gives_up_ends_its_call(
    start_mcp: StartMcp, platform: EventPlatform, mode: str
) -> None:
    async with start_mcp() as server, server.client(mode) as client:
        call = asyncio.create_task(client.call_tool("test_wait", {}))
        await BENCH.waiting.wait()
        assert server.service.running == 1
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

        await nothing_is_running(server, platform)


@pytest.mark.parametrize("meta", [{}, {"_meta": {"progressToken": "p"}}])
async def test_a_cancelled_call_is_answered_as_one(
    start_mcp: StartMcp, platform: EventPlatform, meta: dict[str, object]
) -> None:
    headers = {"accept": ACCEPT, "mcp-protocol-version": LEGACY, **SESSION}
    body = request("tools/call", {"name": "test_wait", "arguments": {}, **meta}, request_id="7")
    cancelled = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": "7", "reason": "no matter"},
    }
    async with start_mcp() as server:
        call = asyncio.create_task(server.http.post("/mcp", json=body, headers=headers))
        await BENCH.waiting.wait()
        stranger = await server.http.post(
            "/mcp", json=cancelled, headers={**headers, "mcp-session-id": "b" * 32}
        )
        assert (stranger.status_code, server.service.running) == (202, 1)
        assert (await server.http.post("/mcp", json=cancelled, headers=headers)).status_code == 202
        answer = await call

        await nothing_is_running(server, platform)
    assert '"id":"7"' in answer.text
    assert "-32800" in answer.text


@both
async def test_a_connection_that_breaks_ends_its_call(
    start_mcp: StartMcp, platform: EventPlatform, mode: str
) -> None:
    params = {"name": "test_wait", "arguments": {}}
    body = request("tools/call", params) if mode == LEGACY else enveloped("tools/call", params)
    legacy = {"accept": ACCEPT, "mcp-protocol-version": LEGACY}
    headers = legacy if mode == LEGACY else routing("tools/call", params)
    async with start_mcp() as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE) as http:
            call = asyncio.create_task(http.post("/mcp", json=body, headers=headers))
            await BENCH.waiting.wait()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)

        await nothing_is_running(server, platform)


async def test_changes_are_reported_to_older_clients(start_mcp: StartMcp) -> None:
    changed = asyncio.Event()

    async def note(message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    async with start_mcp() as server, server.client(LEGACY, message_handler=note) as client:
        capabilities = client.server_capabilities.tools
        assert capabilities is not None
        assert capabilities.list_changed is True
        await listeners(server, 1)
        server.catalogue.current = without_echo(server)
        async with asyncio.timeout(PATIENCE):
            await changed.wait()
        assert "test_echo" not in {tool.name for tool in (await client.list_tools()).tools}


async def listeners(server: McpServer, number: int) -> None:
    """Wait until so many listen."""

    async def listening() -> bool:
        return server.face.count_listeners == number

    await eventually(listening)


async def test_changes_are_shown_to_clients_that_subscribe(start_mcp: StartMcp) -> None:
    async with start_mcp() as server, server.client(MODERN) as client:
        declared = (await server.modern("server/discover")).json()["result"]["capabilities"]
        assert (declared["tools"], declared["prompts"]) == ({"listChanged": True}, {})
        async with client.listen(tools_list_changed=True, prompts_list_changed=True) as subscription:
            assert subscription.honored.tools_list_changed is True
            assert subscription.honored.prompts_list_changed is None
            server.catalogue.current = without_echo(server)
            await first_notification(subscription)
            assert "test_echo" not in {tool.name for tool in (await client.list_tools()).tools}
        await listeners(server, 0)


async def first_notification(subscription: Subscription) -> None:
    """Wait for the next event."""
    async with asyncio.timeout(PATIENCE):
        await anext(aiter(subscription))


@contextlib.asynccontextmanager
async def lines(server: McpServer, path: str = "/mcp") -> AsyncIterator[AsyncIterator[str]]:
    """Give the lines of the stream of changes."""
    async with server.http.stream("GET", path, headers=LISTEN) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield response.aiter_lines()


async def test_what_changes_nothing_for_a_client_is_not_reported(start_mcp: StartMcp) -> None:
    settings = McpSettings(pace=StreamPace(keep_alive=1.0))
    async with start_mcp(settings) as server, lines(server) as shown:
        assert (await anext(shown)).startswith(":")
        tools = server.catalogue.current.tools
        server.catalogue.current = Catalogue({name: replace(one, timeout=1) for name, one in tools.items()})
        assert await anext(shown) == ""
        assert await anext(shown) == ": keep-alive"


async def test_streams_end_when_the_service_drains(start_mcp: StartMcp) -> None:
    async with (
        start_mcp() as server,
        server.client(MODERN) as client,
        lines(server) as shown,
        client.listen(tools_list_changed=True) as subscription,
    ):
        server.service.draining = True
        async with asyncio.timeout(PATIENCE):
            assert [event async for event in subscription] == []
            assert [line async for line in shown if line.startswith("data")] == []


async def test_only_so_many_clients_listen(start_mcp: StartMcp) -> None:
    async with start_mcp(McpSettings(max_listeners=1)) as server, server.client(MODERN) as client:
        async with lines(server):
            refused = await server.http.get("/mcp", headers=LISTEN)
            with pytest.raises(MCPError, match="limit of clients that wait"):
                async with client.listen(tools_list_changed=True):
                    pass
        await listeners(server, 0)
        async with client.listen(tools_list_changed=True):
            await listeners(server, 1)

    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "1"


@pytest.mark.parametrize(
    ("timeout", "meta", "content_type"),
    [
        (10, {}, "application/json"),
        (60, {}, "text/event-stream"),
        (10, {"_meta": {"progressToken": 1}}, "text/event-stream"),
    ],
)
async def test_only_what_may_take_long_is_streamed_to_older_clients(
    start_mcp: StartMcp, timeout: float, meta: dict[str, object], content_type: str
) -> None:
    headers = {"accept": ACCEPT, "mcp-protocol-version": LEGACY}
    async with start_mcp() as server:
        echo = server.catalogue.current.tools["test_echo"]
        server.catalogue.current = Catalogue({"test_echo": replace(echo, timeout=timeout)})
        body = request("tools/call", {"name": "test_echo", "arguments": {"text": "x"}, **meta})
        answer = await server.http.post("/mcp", json=body, headers=headers)

    assert answer.headers["content-type"].startswith(content_type)
    assert '"text":"x"' in answer.text
