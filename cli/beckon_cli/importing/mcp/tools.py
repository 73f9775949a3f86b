"""The EventTypes of an MCP server's tools.

They have a name, a type, a description and parameters for each tool.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_types import Tool

from beckon_cli.importing.candidates import Skipped
from beckon_cli.importing.credential import Credential, Part
from beckon_cli.importing.mcp.reading import Place
from beckon_cli.importing.selection import choose_things, matches_pattern
from beckon_cli.importing.yamltext import write_yaml
from beckon_contract.names import Identity, assign_names
from beckon_contract.options import DESTRUCTIVE, IDEMPOTENT, MCP, READ_ONLY
from beckon_contract.parameters import SchemaError, normalise

_NO_NAME = re.compile(r"[^a-z0-9]+")
_LONGEST = 200  # characters of a name; Kubernetes takes 253


@dataclass(frozen=True, slots=True)
class Server:
    """A server, its name and its credential.

    The names of its tools begin with `name`. The adapter calls it with `credential`.
    """

    name: str
    place: Place
    credential: str = ""


@dataclass(frozen=True, slots=True)
class ImportedTools:
    """A tool to be written as an EventType.

    `what` is its name at the server.
    """

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
        """Its name for the model."""
        identity = Identity("", self.object_name)
        return assign_names({identity: self.object_name})[identity]

    @property
    def type(self) -> str:
        """The type of its calls, equal to its EventType's name."""
        return self.object_name

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations: the server's hints on it, and the bridge's rule."""
        rule = {"server": self.url or self.server.name, "tool": self.what}
        if self.server.credential:
            rule["credential"] = self.server.credential
        return {**self.hints, MCP: write_yaml(rule)}

    @property
    def url(self) -> str:
        """The URL of the server, "" for a command."""
        return self.server.place.url

    @property
    def credential(self) -> Credential:
        """The adapter's credential for the server."""
        return Credential(self.server.credential, (Part("bearer"),) if self.server.credential else ())

    @property
    def details(self) -> Mapping[str, str]:
        """Nothing: a server has one name for a tool."""
        return {}


def import_tools(
    tools: Sequence[Tool], server: Server, words: Sequence[str] = ()
) -> list[ImportedTools | Skipped]:
    """Return the results for the tools matched by any word.

    Without words these are all tools. Raises `NoSource` for a word that matches nothing.
    """
    results = list(_import_tools(tools, server))
    names = [name for each in results for name in (each.what, each.name)]
    chosen = choose_things(
        results,
        words,
        lambda word, each: matches_pattern(each.what, word) or matches_pattern(each.name, word),
        noun="tool",
        known=names,
    )
    return [each for each, is_meant in zip(results, chosen, strict=True) if is_meant]


def _import_tools(tools: Iterable[Tool], server: Server) -> Iterator[ImportedTools | Skipped]:
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
        yield ImportedTools(
            server, tool.name, name, _description_of(tool), tool.input_schema, _hint_annotations(tool)
        )


def object_name(text: str) -> str:
    """Return a text as a part of a Kubernetes name."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", text)
    return _NO_NAME.sub("-", spaced.lower()).strip("-") or "tool"


def _description_of(tool: Tool) -> str:
    said = (tool.description or tool.title or "").strip()
    return said or f"Call the tool {tool.name}."


def _hint_annotations(tool: Tool) -> dict[str, str]:
    """Return the server's hints on a tool as annotations.

    A hint that the server does not give is left out.
    """
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
