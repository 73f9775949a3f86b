"""Connections to MCP servers, of both revisions of the protocol.

A server at a URL gets a new connection for each call, so that nothing is lost if the server restarts. A
command (module `commands`) keeps running.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import CallToolResult, Tool

from beckon_adapter.bridge.failures import convert_errors

LISTING_SECONDS = 30.0
_MOST_TOOLS = 2000


class Server(Protocol):
    """One MCP server."""

    async def call(
        self, tool: str, arguments: Mapping[str, Any], seconds: float, heard: ProgressFnT | None = None
    ) -> CallToolResult:
        """Return the result of a tool; `heard` receives its progress.

        Raises `Unreachable`, `ToolError` if the server refuses the call, and the errors of outgoing
        requests.
        """
        ...

    async def tools(self) -> Sequence[Tool]:
        """Return the server's current tools; raises as `call` does."""
        ...

    async def close(self) -> None:
        """Close the server's connection or process."""
        ...


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server at a URL, with a client allowed to reach it."""

    url: str
    client: httpx2.AsyncClient

    async def call(
        self, tool: str, arguments: Mapping[str, Any], seconds: float, heard: ProgressFnT | None = None
    ) -> CallToolResult:
        """Connect, call the tool, and disconnect."""
        sent = False
        with convert_errors(lambda: sent):
            async with asyncio.timeout(seconds), self._connection() as client:
                sent = True
                return await client.call_tool(tool, dict(arguments), progress_callback=heard)

    async def tools(self) -> Sequence[Tool]:
        """Connect, list the tools, and disconnect."""
        with convert_errors(lambda: False):
            async with asyncio.timeout(LISTING_SECONDS), self._connection() as client:
                return await list_tools(client)

    async def close(self) -> None:
        """Do nothing: there is no connection between calls."""

    def _connection(self) -> Client:
        return Client(streamable_http_client(self.url, http_client=self.client), cache=None)


async def list_tools(client: Client) -> Sequence[Tool]:
    """Return all tools of a server, page by page."""
    tools: list[Tool] = []
    cursor: str | None = None
    while len(tools) < _MOST_TOOLS:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    return tools[:_MOST_TOOLS]
