"""The ASGI application of the adapter: a tool's endpoints over a registry of rules.

A source keeps the rule registry up to date.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, MutableMapping
from typing import Any, Protocol

import httpx2

from beckon_adapter.backends import Backends
from beckon_adapter.declaration import declare_tool, has_rule
from beckon_adapter.egress.client import EgressClient
from beckon_adapter.egress.hosts import AllowedHosts, Credentials
from beckon_adapter.egress.network import CheckedNetwork, CheckedTransport
from beckon_adapter.registry import RuleRegistry
from beckon_adapter.settings import AdapterSettings
from beckon_tools.app import Receive, Scope, Send, ToolApp
from beckon_tools.declaration import AnyTool
from beckon_tools.settings import MAX_ANSWER_BYTES, USER_AGENT, Settings

_CONNECTIONS = 100  # to APIs at once
_NOT_READ = b"the EventTypes have not been read yet\n"
_NOT_RUNNING = b"the MCP server does not run yet; the log says why\n"


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
        elif scope.get("path") == "/readyz" and (missing := self._not_ready_reason()):
            headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(missing))]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            await send({"type": "http.response.body", "body": missing})
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

    def _not_ready_reason(self) -> bytes:
        if not self._source.ready:
            return _NOT_READ
        return b"" if self._backends.ready else _NOT_RUNNING


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
    allowed = AllowedHosts(settings.allowed_hosts)
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
