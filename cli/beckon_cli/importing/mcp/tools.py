"""The tools of an MCP server: listed, chosen and imported."""

import asyncio
import logging
import os
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Tool

from beckon_adapter.egress.hosts import NoCredential
from beckon_adapter.mcp.http_server import iterate_errors, read_tool_list
from beckon_cli.importing.candidates import (
    Credential,
    ImportSource,
    NamedByObjects,
    NoSource,
    Service,
    Skipped,
    Source,
    bearer_credential,
    choose_by_name,
    join_names,
    object_name,
    source_name,
)
from beckon_cli.importing.manifests import json_text
from beckon_cli.importing.mcp.service import service_name
from beckon_cli.importing.mcp.sign_in import SIGN_IN_SECONDS, SignInFailed
from beckon_contract.catalogue.annotations import DESTRUCTIVE, IDEMPOTENT, MCP, READ_ONLY, RETURNS
from beckon_contract.schema.parameters import SchemaError, normalise, normalise_result
from beckon_contract.yamltext import write_yaml

_SECONDS = 60.0
_CREDENTIALS = "send a bearer token with --token-file FILE, or sign in with --login"


class NoServer(NoSource):
    """The server cannot be reached; the message is one line with the cause."""


class NoPlace(NoSource):
    """The typed words are neither an HTTP URL nor a program. The message is one line."""


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


async def list_server_tools(place: Place, auth: httpx2.Auth | None = None) -> ServerTools:
    """Return a server's name and tools. Raises `NoServer` and `NoPlace`."""
    # The SDK logs what a server sends amiss with its stack; here it is one line of the command.
    logging.getLogger("mcp.client").setLevel(logging.CRITICAL)
    if place.command and not shutil.which(place.command[0]):
        raise NoPlace(f"there is no program {place.command[0]} here: name one on the PATH, or a URL")
    refused: list[int] = []

    async def note_refusal(response: httpx2.Response) -> None:
        if response.status_code in (401, 403):
            refused.append(response.status_code)

    # A person who signs in has minutes.
    seconds = _SECONDS + (SIGN_IN_SECONDS if isinstance(auth, OAuthClientProvider) else 0)
    try:
        async with (
            asyncio.timeout(seconds),
            httpx2.AsyncClient(auth=auth, timeout=_SECONDS, event_hooks={"response": [note_refusal]}) as http,
        ):
            return await _connect_and_list(place, http)
    except TimeoutError:
        raise NoServer(f"{place} did not answer within {seconds:g} seconds") from None
    except Exception as error:  # connections raise groups of whatever went wrong
        cause = _find_cause(next(iterate_errors(error)), refused)
        if cause is None:
            raise
        raise NoServer(f"{place} {cause}") from None


def _find_cause(error: BaseException, refused: Sequence[int]) -> str | None:
    """Return why there are no tools, `None` for an error that is ours. `refused` are statuses 401 and 403."""
    match error:
        case OAuthRegistrationError():
            reason = str(error).partition("<")[0].strip()
            return f"takes no unknown client ({reason}): make one there, and name it with --client-id"
        case OAuthFlowError() | SignInFailed():
            return f"did not accept the sign-in: {error}"
        case NoCredential():
            return f"requires a sign-in: {error}"
        # The last one is the SDK's for a server with an unknown version of MCP.
        case (
            MCPError() | OSError() | ValueError() | httpx2.HTTPError() | httpx2.InvalidURL() | RuntimeError()
        ):
            if refused:
                return f"requires other credentials ({refused[-1]}): {_CREDENTIALS}"
            first_line = str(error).partition("\n")[0]
            return f"gave no tools: {type(error).__name__}: {first_line}"
    return None


async def _connect_and_list(place: Place, http: httpx2.AsyncClient) -> ServerTools:
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


class BearerToken(httpx2.Auth):
    """Sends a token as it is. It is not in the `repr`."""

    def __init__(self, token: str) -> None:
        self._token = token

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add the token to a request."""
        request.headers["authorization"] = f"Bearer {self._token}"
        yield request


@dataclass(frozen=True, slots=True)
class Server:
    """A server, its name and its credential.

    The names of its tools begin with `name`. The adapter calls it with `credential`.
    """

    name: str
    place: Place
    credential: str = ""


@dataclass(frozen=True, slots=True)
class ImportedTools(NamedByObjects):
    """A tool to be written as an EventType. `what` is its name at the server."""

    server: Server
    what: str
    object_name: str
    description: str
    parameters: Mapping[str, Any]
    hints: Mapping[str, str]
    tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    returns: Mapping[str, Any] | None = None

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations: the server's hints on it, and the bridge's rule."""
        rule = {"server": self.url or self.server.name, "tool": self.what}
        if self.server.credential:
            rule["credential"] = self.server.credential
        returns = {} if self.returns is None else {RETURNS: json_text(self.returns)}
        return {**self.hints, MCP: write_yaml(rule), **returns}

    @property
    def url(self) -> str:
        """The URL of the server, "" for a command."""
        return self.server.place.url

    @property
    def credential(self) -> Credential:
        """The adapter's credential for the server."""
        return bearer_credential(self.server.credential)


def import_tools(
    tools: Sequence[Tool], server: Server, words: Sequence[str] = ()
) -> tuple[ImportedTools | Skipped, ...]:
    """Return the results for the tools matched by any word.

    Without words these are all tools. Raises `NoSource` for a word that matches nothing.
    """
    return choose_by_name(list(_import_tools(tools, server)), words, "tool")


def _import_tools(tools: Iterable[Tool], server: Server) -> Iterator[ImportedTools | Skipped]:
    names: set[str] = set()
    for tool in tools:
        name = join_names(server.name, object_name(tool.name))
        if name in names:
            yield Skipped(tool.name, name, f"another tool is called {name} already")
            continue
        try:
            normalise(tool.input_schema)
        except SchemaError as error:
            yield Skipped(tool.name, name, f"its parameters cannot be used: {error}")
            continue
        names.add(name)
        returns, notes = _read_output_schema(tool)
        yield ImportedTools(
            server,
            tool.name,
            name,
            _description_of(tool),
            tool.input_schema,
            _hint_annotations(tool),
            notes=notes,
            returns=returns,
        )


def _read_output_schema(tool: Tool) -> tuple[Mapping[str, Any] | None, tuple[str, ...]]:
    """Return the schema of a tool's results, and a note for one that cannot be used."""
    if tool.output_schema is None:
        return None, ()
    try:
        normalise_result(tool.output_schema)
    except SchemaError as error:
        return None, (f"its outputSchema is left out, because it cannot be used: {error}",)
    return tool.output_schema, ()


def _description_of(tool: Tool) -> str:
    description = (tool.description or tool.title or "").strip()
    return description or f"Call the tool {tool.name}."


def _hint_annotations(tool: Tool) -> dict[str, str]:
    """Return the server's hints on a tool as annotations.

    A hint that the server does not give is left out.
    """
    annotations = tool.annotations
    if annotations is None:
        return {}
    hints: dict[str, str] = {}
    if annotations.read_only_hint:
        hints[READ_ONLY] = "true"
    elif annotations.destructive_hint is not None:
        hints[DESTRUCTIVE] = str(annotations.destructive_hint).lower()
    if annotations.idempotent_hint or annotations.read_only_hint:
        hints[IDEMPOTENT] = "true"
    return hints


@dataclass(frozen=True, slots=True)
class McpOptions:
    """The options of an import: tools, name, credential and token.

    `words` select tools; without any, all are imported. Without a `name` the server's own name is used. The
    tools are listed with `auth` and called with `credential`.
    """

    words: Sequence[str] = ()
    name: str = ""
    credential: str = ""
    auth: httpx2.Auth | None = None


def find_tools(
    place: Place, wanted: McpOptions, service_of: Callable[[str], Service]
) -> ImportSource[ImportedTools]:
    """List a server's tools and return the results of the import.

    `service_of` makes the Service of a command from the server's name. Raises `NoSource`.
    """
    listed = asyncio.run(list_server_tools(place, wanted.auth))
    name = source_name(wanted.name or listed.name or "mcp")
    server = Server(name, place, wanted.credential)
    return ImportSource(
        importer="mcp",
        noun="tool",
        title=name,
        name=service_name(name),
        origin=Source(f"the MCP server {name}", "--name"),
        present=frozenset(tool.name for tool in listed.tools),
        results=import_tools(listed.tools, server, wanted.words),
        service=service_of(name) if place.command else None,
    )
