"""The tools of an MCP server as results of an import."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from beckon_cli.importing.candidates import Found, Service
from beckon_cli.importing.files import Source
from beckon_cli.importing.mcp.bridge import service_name
from beckon_cli.importing.mcp.reading import Place, list_server_tools
from beckon_cli.importing.mcp.tools import ImportedTools, Server, import_tools, object_name

_LONGEST_NAME = 40  # characters of a server's name, which is a part of other names


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of an import: tools, name, credential and token.

    `words` select tools; without any, all are imported. Without a `name` the server's own name is used. The
    tools are listed with `token` and called with `credential`.
    """

    words: Sequence[str] = ()
    name: str = ""
    credential: str = ""
    token: str = ""


def find_tools(place: Place, wanted: Wanted, service_of: Callable[[str], Service]) -> Found[ImportedTools]:
    """List a server's tools and return the results of the import.

    `service_of` makes the Service of a command from the server's name. Raises `NoSource`.
    """
    found = asyncio.run(list_server_tools(place, wanted.token))
    name = object_name(wanted.name or found.name or "mcp")[:_LONGEST_NAME].rstrip("-")
    server = Server(name, place, wanted.credential)
    return Found(
        importer="mcp",
        noun="tool",
        title=name,
        name=service_name(name),
        source=Source(f"the MCP server {name}", "--name"),
        present=frozenset(tool.name for tool in found.tools),
        results=tuple(import_tools(found.tools, server, wanted.words)),
        service=service_of(name) if place.command else None,
    )
