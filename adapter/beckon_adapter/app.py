"""The ASGI application of the adapter: a tool's endpoints over a registry of rules.

A source keeps the rule registry up to date. The backends make the requests to APIs and the calls to MCP
servers; the part for MCP servers is loaded with the first rule that needs it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import httpx2
from prometheus_client import Gauge

from beckon_adapter.a2a import A2aCaller
from beckon_adapter.caller import HttpCaller
from beckon_adapter.declaration import Call, Prepare, RuleRegistry, Run, declare_tool, has_rule
from beckon_adapter.egress.client import CheckedNetwork, CheckedTransport, EgressClient
from beckon_adapter.egress.hosts import Credentials, allow_hosts
from beckon_adapter.rule import NamedServer, parse_mcp_rule
from beckon_adapter.settings import AdapterSettings
from beckon_contract.catalogue.annotations import A2A, HTTP, MCP
from beckon_runtime.egress import AllowedHosts
from beckon_tools.app import Receive, Scope, Send, ToolApp
from beckon_tools.declaration import AnyTool
from beckon_tools.settings import MAX_ANSWER_BYTES, USER_AGENT, Settings

if TYPE_CHECKING:
    from beckon_adapter.mcp.caller import McpCaller


class Backends:
    """All backends of rules, over one client for outgoing requests.

    `server` names the MCP server to start before any call.
    """

    def __init__(self, egress: EgressClient, servers: Sequence[NamedServer] = (), server: str = "") -> None:
        self.trouble = f"the MCP server {server} has not started yet" if server else ""
        self.differing = Gauge(
            "beckon_mcp_tools_differing",
            "Tools of an MCP server that are no longer what their EventTypes say.",
            ["server"],
            registry=None,
        )
        self._egress = egress
        self._server = server
        self._servers = tuple(servers)
        self._bridge: McpCaller | None = None
        self.by_annotation: Mapping[str, Prepare] = {
            HTTP: HttpCaller(egress).prepare_rule,
            MCP: self._prepare_mcp_rule,
            A2A: A2aCaller(egress).prepare_rule,
        }

    async def keep_running(self) -> None:
        """Keep the MCP server `server`, if any, running until cancelled."""
        if self._server:
            await self._mcp_caller().keep_running(self._server, self._note_start)

    async def close(self) -> None:
        """Close the MCP servers and all connections."""
        if self._bridge is not None:
            await self._bridge.close()
        await self._egress.client.aclose()

    def _note_start(self, trouble: str) -> None:
        """Note why the server does not start; once it has started, it counts as ready for good."""
        if self.trouble:
            self.trouble = trouble

    def _mcp_caller(self) -> "McpCaller":
        from beckon_adapter.mcp.caller import McpCaller  # noqa: PLC0415 costs 55 MB, few need it

        self._bridge = self._bridge or McpCaller(self._egress, self._servers, self.differing)
        return self._bridge

    def _prepare_mcp_rule(self, text: str, parameters: Mapping[str, object]) -> Run:
        rule = parse_mcp_rule(text)
        bridge = self._mcp_caller()
        expected = bridge.expect_tool(rule, parameters)

        async def run_call(arguments: Mapping[str, object], call: Call, _server: object = expected) -> object:
            return await bridge.call_tool(rule, arguments, call)

        return run_call


_CONNECTIONS = 100  # to APIs at once
_NOT_READ = "the EventTypes have not been read yet"


class Source(Protocol):
    """A source of EventTypes."""

    @property
    def ready(self) -> bool:
        """True if all EventTypes have been read once."""
        ...

    async def follow(self) -> None:
        """Keep the registry up to date until cancelled."""
        ...

    async def catch_up(self) -> None:
        """Wait until earlier changes are in the registry.

        This covers the changes made before the call, as far as the source can know of them.
        """
        ...

    async def close(self) -> None:
        """Release the resources taken by `follow`."""
        ...


class AdapterApp:
    """The adapter over HTTP: calls by `POST /`, as for every tool.

    It is ready once the EventTypes have been read, and the MCP server of its image runs, if it has one.
    """

    def __init__(
        self, registry: RuleRegistry, source: Source, backends: Backends, settings: Settings
    ) -> None:
        self._registry = registry
        self._source = source
        self._backends = backends
        self._calls = ToolApp(self._find_tool, settings, [backends.differing])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "lifespan":
            await self._run_lifespan(scope, receive, send)
        elif scope.get("path") == "/readyz" and (reason := self._not_ready_reason()):
            body = f"{reason}\n".encode()
            headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        else:
            await self._calls(scope, receive, send)

    async def _run_lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Report the end of the shutdown only after everything has ended.

        The server ends the process on `lifespan.shutdown.complete`, so this message is sent last.
        """
        last: list[MutableMapping[str, Any]] = []

        async def hold_shutdown(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "lifespan.shutdown.complete":
                last.append(message)
            else:
                await send(message)

        async with _follow_source(self._source, self._backends):
            await self._calls(scope, receive, hold_shutdown)
        for message in last:
            await send(message)

    async def _find_tool(self, type_: str, namespace: str) -> AnyTool | None:
        tool = self._registry.find(type_, namespace)
        if tool is None:
            await self._source.catch_up()
            tool = self._registry.find(type_, namespace)
        return tool

    def _not_ready_reason(self) -> str:
        return self._backends.trouble if self._source.ready else _NOT_READ


def new_app(
    settings: AdapterSettings,
    tools: Settings,
    source: Callable[[RuleRegistry, AllowedHosts], Source],
    server: str = "",
) -> AdapterApp:
    """Return the adapter; `source` creates its source of EventTypes.

    `server` names the MCP server of an image that contains the EventTypes, too. It runs before the adapter
    is ready, and calls are accepted from every namespace.
    """
    allowed = allow_hosts(settings.allowed_hosts)
    client = _make_client(allowed)
    egress = EgressClient(client, allowed, Credentials(settings.credentials), MAX_ANSWER_BYTES)
    backends = Backends(egress, settings.mcp_servers, server)
    registry = RuleRegistry(
        has_rule, lambda resource: declare_tool(resource, backends.by_annotation), anywhere=bool(server)
    )
    return AdapterApp(registry, source(registry, allowed), backends, tools)


def _make_client(allowed: AllowedHosts) -> httpx2.AsyncClient:
    """Return the HTTP client for APIs, limited to allowed hosts."""
    transport = CheckedTransport(CheckedNetwork(allowed), _CONNECTIONS)
    # No compression is requested: decompression has no limit of its own.
    headers = {"user-agent": USER_AGENT, "accept-encoding": "identity"}
    return httpx2.AsyncClient(transport=transport, headers=headers, timeout=None, trust_env=False)


@contextlib.asynccontextmanager
async def _follow_source(source: Source, backends: Backends) -> AsyncIterator[None]:
    following = [asyncio.create_task(source.follow()), asyncio.create_task(backends.keep_running())]
    try:
        yield
    finally:
        for task in following:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await source.close()
        await backends.close()
