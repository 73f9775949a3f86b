"""What each tool of an MCP server becomes: an EventType's name, type, description and parameters."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_types import Tool

from beckon_cli.importing.candidates import Skipped
from beckon_cli.importing.credential import Credential, Part
from beckon_cli.importing.mcp.reading import Place
from beckon_cli.importing.selection import choose, matches
from beckon_cli.importing.yamltext import write
from beckon_contract.names import Identity, assign_names
from beckon_contract.options import DESTRUCTIVE, IDEMPOTENT, MCP, READ_ONLY
from beckon_contract.parameters import SchemaError, normalise

_NO_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST = 200  # characters of a name; Kubernetes takes 253


@dataclass(frozen=True, slots=True)
class Server:
    """A server under the name with which its tools begin, and the credential that lets the adapter in."""

    name: str
    place: Place
    credential: str = ""


@dataclass(frozen=True, slots=True)
class ImportedTools:
    """A tool that becomes an EventType: `what` is its name at the server."""

    server: Server
    what: str
    object_name: str
    description: str
    parameters: Mapping[str, Any]
    hints: Mapping[str, str]
    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What a model will call it."""
        identity = Identity("", self.object_name)
        return assign_names({identity: self.object_name})[identity]

    @property
    def type(self) -> str:
        """The type of its calls: what its EventType is called."""
        return self.object_name

    @property
    def annotations(self) -> Mapping[str, str]:
        """What the server says of it, and the rule of the bridge."""
        rule = {"server": self.url or self.server.name, "tool": self.what}
        if self.server.credential:
            rule["credential"] = self.server.credential
        return {**self.hints, MCP: write(rule)}

    @property
    def url(self) -> str:
        """Where the server is, "" for a command."""
        return self.server.place.url

    @property
    def credential(self) -> Credential:
        """What the adapter is let in with."""
        return Credential(self.server.credential, (Part("bearer"),) if self.server.credential else ())

    @property
    def details(self) -> Mapping[str, str]:
        """Nothing: a server has one name for a tool."""
        return {}


def import_tools(
    tools: Sequence[Tool], server: Server, words: Sequence[str] = ()
) -> list[ImportedTools | Skipped]:
    """Return what becomes of the tools that one of the words means, of all without any.

    Raises `NoSource` for a word that means nothing.
    """
    results = list(_import(tools, server))
    names = [name for each in results for name in (each.what, each.name)]
    chosen = choose(
        results,
        words,
        lambda word, each: matches(each.what, word) or matches(each.name, word),
        noun="tool",
        known=names,
    )
    return [each for each, is_meant in zip(results, chosen, strict=True) if is_meant]


def _import(tools: Iterable[Tool], server: Server) -> Iterator[ImportedTools | Skipped]:
    taken: set[str] = set()
    for tool in tools:
        name = f"{server.name}.{object_name(tool.name)}"[:_LONGEST].rstrip("-.")
        if name in taken:
            yield Skipped(tool.name, name, f"another tool is called {name} already")
            continue
        try:
            normalise(tool.input_schema)
        except SchemaError as error:
            yield Skipped(tool.name, name, f"its parameters cannot be used: {error}")
            continue
        taken.add(name)
        yield ImportedTools(server, tool.name, name, _description(tool), tool.input_schema, _hints(tool))


def object_name(text: str) -> str:
    """Return a text as a part of a Kubernetes name."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", text)
    return _NO_NAME.sub("-", spaced.lower()).strip("-") or "tool"


def _description(tool: Tool) -> str:
    said = (tool.description or tool.title or "").strip()
    return said or f"Call the tool {tool.name}."


def _hints(tool: Tool) -> dict[str, str]:
    """Return what the server says of a tool, as annotations; what it does not say is left open."""
    said = tool.annotations
    if said is None:
        return {}
    hints: dict[str, str] = {}
    if said.read_only_hint:
        hints[READ_ONLY] = "true"
    elif said.destructive_hint is not None:
        hints[DESTRUCTIVE] = str(said.destructive_hint).lower()
    if said.idempotent_hint or said.read_only_hint:
        hints[IDEMPOTENT] = "true"
    return hints
