"""The ASGI application of the adapter: a tool's endpoints over a rule book.

A source keeps the rule book up to date.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, MutableMapping
from typing import Any, Protocol

import httpx2

from beckon_adapter.book import RuleBook
from beckon_adapter.carriers import Carrying
from beckon_adapter.declared import declare, has_rule
from beckon_adapter.outbound.credentials import Credentials
from beckon_adapter.outbound.egress import EgressClient
from beckon_adapter.outbound.hosts import AllowedHosts
from beckon_adapter.outbound.network import CheckedNetwork, CheckedTransport
from beckon_adapter.settings import AdapterSettings
from beckon_tools.app import Receive, Scope, Send, ToolApp
from beckon_tools.declaration import AnyTool
from beckon_tools.settings import Settings

_NOT_READ = b"the EventTypes have not been read yet\n"
_NOT_RUNNING = b"the MCP server does not run yet; the log says why\n"


class Source(Protocol):
    """A source of EventTypes."""

    @property
    def ready(self) -> bool:
        """True if all EventTypes have been read once."""
        ...

    async def follow(self) -> None:
        """Keep the book up to date until cancelled."""
        ...

    async def catch_up(self) -> None:
        """Wait until earlier changes are in the book.

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

    def __init__(self, book: RuleBook, source: Source, carrying: Carrying, settings: Settings) -> None:
        self._book = book
        self._source = source
        self._carrying = carrying
        self._calls = ToolApp(self._find, settings, [carrying.differing])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope."""
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        elif scope.get("path") == "/readyz" and (missing := self._missing()):
            headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(missing))]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            await send({"type": "http.response.body", "body": missing})
        else:
            await self._calls(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Report the end of the shutdown only after everything has ended.

        The server ends the process on `lifespan.shutdown.complete`, so this message is sent last.
        """
        last: list[MutableMapping[str, Any]] = []

        async def hold(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "lifespan.shutdown.complete":
                last.append(message)
            else:
                await send(message)

        async with _following(self._source, self._carrying):
            await self._calls(scope, receive, hold)
        for message in last:
            await send(message)

    async def _find(self, type_: str, namespace: str) -> AnyTool | None:
        tool = self._book.find(type_, namespace)
        if tool is None:
            await self._source.catch_up()
            tool = self._book.find(type_, namespace)
        return tool

    def _missing(self) -> bytes:
        if not self._source.ready:
            return _NOT_READ
        return b"" if self._carrying.ready else _NOT_RUNNING


def new_app(
    settings: AdapterSettings,
    tools: Settings,
    source: Callable[[RuleBook, AllowedHosts], Source],
    server: str = "",
) -> AdapterApp:
    """Return the adapter; `source` creates its source of EventTypes.

    `server` names the MCP server of an image that contains the EventTypes, too. It runs before the adapter
    is ready, and calls are accepted from every namespace.
    """
    allowed = AllowedHosts(settings.allowed_hosts)
    client = _client(allowed, settings.connections, tools.user_agent)
    egress = EgressClient(client, allowed, Credentials(settings.credentials), tools.outbound_limit)
    carrying = Carrying(egress, settings.mcp_servers, server)
    book = RuleBook(
        has_rule, lambda resource: declare(resource, carrying.by_annotation), anywhere=bool(server)
    )
    return AdapterApp(book, source(book, allowed), carrying, tools)


def _client(allowed: AllowedHosts, connections: int, user_agent: str) -> httpx2.AsyncClient:
    """Return the HTTP client for APIs, limited to allowed hosts."""
    transport = CheckedTransport(CheckedNetwork(allowed), connections)
    # Nothing is asked to be packed: what unpacks has no bound of its own.
    headers = {"user-agent": user_agent, "accept-encoding": "identity"}
    return httpx2.AsyncClient(transport=transport, headers=headers, timeout=None, trust_env=False)


@contextlib.asynccontextmanager
async def _following(source: Source, carrying: Carrying) -> AsyncIterator[None]:
    following = [asyncio.create_task(source.follow()), asyncio.create_task(carrying.keep())]
    try:
        yield
    finally:
        for task in following:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await source.close()
        await carrying.close()
