"""Anyone who asks sees and calls what it may use: the principal reaches all that the SDK does elsewhere."""

import asyncio
import contextlib
from dataclasses import replace
from pathlib import Path

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from beckon_agent.agents.registry import AgentHandle, SingleAgent
from beckon_agent.api.mcp.notifications import Cancellations
from beckon_agent.api.mcp.server import McpSettings
from beckon_agent.auth.authorization import PermittedAgents
from beckon_agent.core.context import Principal, acting_as
from beckon_agent.store.sql.open import open_store
from beckon_contract.catalogue.builder import Catalogue
from beckon_contract.resources.agent_terms import Access, Callers, Terms, ToolRule
from beckon_contract.resources.tools import ToolSelector
from tests.agent.event_platform import EventPlatform
from tests.agent.mcp.mcp_server import ACCEPT, LEGACY, MODERN, McpServer, mcp_server, request
from tests.agent.tools_for_tests import BENCH
from tests.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")
both = pytest.mark.parametrize("mode", [LEGACY, MODERN])


class ByHeader:
    """Takes the caller's word for who it is."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with acting_as(Principal(Headers(scope=scope)["x-who"], frozenset(), "key")):
            await self._app(scope, receive, send)


def only_echo_for_ada(server: McpServer) -> None:
    """Let everybody use the agent, Ada with one tool, Bob with another one."""
    hosted = server.service.registry.find("beckon")
    assert isinstance(hosted, AgentHandle)
    rules = tuple(
        ToolRule(Callers(frozenset({who})), ToolSelector(names=frozenset({tool})))
        for who, tool in (("key:ada", "test_echo"), ("key:bob", "test_nap"))
    )
    agent = replace(hosted.agent, terms=Terms(Access(Callers(frozenset({"*"})), rules)))
    permitted = replace(hosted, agent=agent)
    server.service.registry = PermittedAgents(SingleAgent(permitted, asyncio.Event().wait))


def client(server: McpServer, http: httpx2.AsyncClient, mode: str) -> Client:
    """Return a client whose requests carry the headers of `http`."""
    transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
    return Client(transport, mode="legacy" if mode == LEGACY else MODERN)


@both
async def test_each_sees_and_calls_its_own_tools(platform: EventPlatform, mode: str) -> None:
    BENCH.reset()
    async with mcp_server(platform.shim, platform.folder, middleware=ByHeader) as server:
        only_echo_for_ada(server)
        seen = {}
        for who in ("key:ada", "key:bob", "key:eve"):
            async with (
                httpx2.AsyncClient(headers={"x-who": who}) as http,
                client(server, http, mode) as asking,
            ):
                seen[who] = [tool.name for tool in (await asking.list_tools()).tools]
                if who == "key:ada":
                    assert not (await asking.call_tool("test_echo", {"text": "a"})).is_error
                else:
                    with pytest.raises(MCPError, match="there is no tool 'test_echo'"):
                        await asking.call_tool("test_echo", {"text": "not for you"})

    assert seen == {"key:ada": ["test_echo"], "key:bob": ["test_nap"], "key:eve": []}
    assert BENCH.calls == ["a"]


async def test_no_one_gets_changes_that_are_not_for_it(platform: EventPlatform) -> None:
    async with (
        mcp_server(platform.shim, platform.folder, middleware=ByHeader) as server,
        httpx2.AsyncClient(headers={"x-who": "key:bob"}) as bobs,
        httpx2.AsyncClient(headers={"x-who": "key:ada"}) as adas,
        client(server, bobs, MODERN) as bob,
        client(server, adas, MODERN) as ada,
    ):
        only_echo_for_ada(server)
        async with (
            bob.listen(tools_list_changed=True) as of_bob,
            ada.listen(tools_list_changed=True) as of_ada,
        ):
            before = server.catalogue.current.tools
            server.catalogue.current = Catalogue(
                {name: before[name] for name in before if name != "test_echo"}
            )
            async with asyncio.timeout(PATIENCE):
                await anext(aiter(of_ada))
            server.service.draining = True
            async with asyncio.timeout(PATIENCE):
                assert [event async for event in of_bob] == []


async def test_a_call_is_cancelled_by_its_caller_at_whichever_replica(
    platform: EventPlatform, tmp_path: Path
) -> None:
    BENCH.reset()
    legacy = {"accept": ACCEPT, "mcp-protocol-version": LEGACY, "mcp-session-id": "a" * 32}
    body = request("tools/call", {"name": "test_wait", "arguments": {}}, request_id="7")
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "7"}}
    store = await open_store(f"sqlite:///{tmp_path / 'store.db'}")
    settings = [McpSettings(cancellations=Cancellations(store.counters, 0.05)) for _ in range(2)]

    async def say(server: McpServer, what: object, who: str) -> httpx.Response:
        return await server.http.post("/mcp", json=what, headers={**legacy, "x-who": who})

    try:
        async with (
            mcp_server(platform.shim, platform.folder, settings[0], middleware=ByHeader) as one,
            mcp_server(platform.shim, platform.folder, settings[1], middleware=ByHeader) as other,
        ):
            call = asyncio.create_task(say(one, body, "key:ada"))
            await BENCH.waiting.wait()
            assert (await say(other, cancelled, "key:ada")).status_code == 202
            answer = await call
    finally:
        BENCH.gate.set()
        await store.aclose()
    assert "-32800" in answer.text


async def test_no_one_cancels_the_call_of_another(tmp_path: Path) -> None:
    ada, bob = (Principal(name, frozenset(), "key") for name in ("key:ada", "key:bob"))
    store = await open_store(f"sqlite:///{tmp_path / 'store.db'}")
    cancellations, key, received = Cancellations(store.counters, 0.01), ("a" * 32, "7"), list[str]()
    try:
        with acting_as(bob):
            await cancellations.announce_call(key)
        with acting_as(ada), contextlib.suppress(TimeoutError):
            await asyncio.wait_for(cancellations.listen_for(key, lambda: received.append("bob")), 0.3)
        with acting_as(ada):
            await cancellations.announce_call(key)
            await asyncio.wait_for(cancellations.listen_for(key, lambda: received.append("ada")), PATIENCE)
    finally:
        await store.aclose()
    assert received == ["ada"]
