"""Asking an MCP server for its tools."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Tool

from beckon_adapter.mcp.http_server import iterate_errors, read_tool_list
from beckon_cli.importing.candidates import NoSource

_SECONDS = 60.0


class NoServer(NoSource):
    """The server cannot be asked; the message is one line with the cause."""


class NoPlace(NoSource):
    """The typed words are neither an HTTP URL nor a program.

    The message is one line.
    """


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a server: a URL, or a command.

    One of them is set. The command speaks MCP over its standard streams.
    """

    url: str = ""
    command: tuple[str, ...] = ()

    @classmethod
    def from_words(cls, words: Sequence[str]) -> "Place":
        """Parse the typed words; raise `NoPlace`."""
        if len(words) == 1 and words[0].startswith(("http://", "https://")):
            return cls(url=words[0])
        if len(words) == 1 and "://" in words[0]:
            raise NoPlace(f"{words[0]} is no server: write https://HOST/mcp, or a command after --")
        return cls(command=tuple(words))

    def __str__(self) -> str:
        """Return it without possible secrets: a URL's query and user."""
        if self.command:
            return " ".join(self.command)
        return str(httpx2.URL(self.url).copy_with(query=None, userinfo=b""))


@dataclass(frozen=True, slots=True)
class ServerTools:
    """A server's own name, and its tools."""

    name: str
    tools: tuple[Tool, ...]


async def list_server_tools(place: Place, token: str = "") -> ServerTools:
    """Return a server's name and tools.

    `token` is sent as a bearer token, if there is one. Raises `NoServer` and `NoPlace`.
    """
    if place.command and not shutil.which(place.command[0]):
        raise NoPlace(f"there is no program {place.command[0]} here: name one on the PATH, or a URL")
    try:
        async with asyncio.timeout(_SECONDS):
            return await _connect_and_list(place, token)
    except TimeoutError:
        raise NoServer(f"{place} did not answer within {_SECONDS:g} seconds") from None
    except Exception as error:  # connections raise groups of whatever went wrong
        first = next(iterate_errors(error))
        if not isinstance(first, (MCPError, OSError, ValueError, httpx2.HTTPError, httpx2.InvalidURL)):
            raise
        raise NoServer(f"{place} gave no tools: {type(first).__name__}: {first}") from None


async def _connect_and_list(place: Place, token: str) -> ServerTools:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=_SECONDS) as http:
        if place.command:
            program, *words = place.command
            # What people type has their environment, as any command they type.
            target = Client(StdioServerParameters(command=program, args=words, env=dict(os.environ)))
        else:
            target = Client(streamable_http_client(place.url, http_client=http))
        async with target as client:
            tools = await read_tool_list(client)
            server = client.server_info
            return ServerTools(server.name if server else "", tuple(tools))
