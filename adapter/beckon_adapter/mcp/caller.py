"""Calls to MCP servers by rules, and the comparison of their tools with EventTypes."""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakSet

import httpx2
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
    Tool,
)
from opentelemetry import trace
from prometheus_client import Gauge

from beckon_adapter.declaration import Call, Report
from beckon_adapter.egress.client import EgressClient
from beckon_adapter.egress.outcomes import convert_failures
from beckon_adapter.mcp.authentication import make_auth
from beckon_adapter.mcp.command_server import CommandServer
from beckon_adapter.mcp.http_server import HttpServer, LimitedTransport, Server, ServerCall
from beckon_adapter.rule import SETTING, McpRule, NamedServer
from beckon_contract.cloudevents.extensions import FIRST_REPORTS
from beckon_contract.jsontext import dumps, loads
from beckon_contract.schema.parameters import parameters_changed
from beckon_runtime.egress import NotAllowed
from beckon_tools.answers import Media
from beckon_tools.errors import ToolError

logger = logging.getLogger(__name__)

_MAX_LISTED = 10


@dataclass(frozen=True, eq=False)
class ExpectedTool:
    """A tool of a server as described by its EventType.

    It is compared as long as a reference to it exists: `ToolComparer` holds only a weak one.
    """

    server: str
    tool: str
    parameters: Mapping[str, Any]


class ToolComparer:
    """Compares tools, logs differences, and counts them for Prometheus.

    Differences are logged when they change.
    """

    def __init__(self, differing: Gauge) -> None:
        self._expected: WeakSet[ExpectedTool] = WeakSet()
        self._differing = differing
        self._logged: dict[str, tuple[str, ...]] = {}

    def expect_tool(self, server: str, tool: str, parameters: Mapping[str, Any]) -> ExpectedTool:
        """Add the tool of an EventType to the comparison.

        It is removed when the returned object is garbage-collected.
        """
        expected = ExpectedTool(server, tool, parameters)
        self._expected.add(expected)
        return expected

    def compare_tools(self, server: str, tools: Sequence[Tool]) -> None:
        """Compare the tools of a server with the expected ones."""
        listed = [each for each in self._expected if each.server == server]
        by_name = {tool.name: tool for tool in tools}
        differences = tuple(sorted(set(_find_differences(listed, by_name))))
        self._differing.labels(server).set(len(differences))
        if differences == self._logged.get(server, ()):
            return
        self._logged[server] = differences
        if not differences:
            logger.info("the tools of the MCP server %s are again those of the EventTypes", server)
            return
        more = f", and {len(differences) - _MAX_LISTED} more" if len(differences) > _MAX_LISTED else ""
        logger.warning(
            "the MCP server %s is no longer what was imported: %s%s; import it again",
            server,
            "; ".join(differences[:_MAX_LISTED]),
            more,
        )


def _find_differences(expected: Sequence[ExpectedTool], there: Mapping[str, Tool]) -> Iterator[str]:
    for each in expected:
        tool = there.get(each.tool)
        if tool is None:
            yield f"it has no tool {each.tool}"
        elif change := parameters_changed(each.parameters, tool.input_schema):
            yield f"{each.tool} has {change}"


@contextlib.asynccontextmanager
async def passed_on(report: Report) -> AsyncIterator[ProgressFnT]:
    """Yield a progress callback for the server's notifications.

    On success each waiting progress is reported before the call is answered; on an error it is dropped.
    """
    newest = _LatestReport(report)
    try:
        yield newest.take_progress
        await newest.wait_until_passed()
    finally:
        newest.drop()


class _LatestReport:
    """Passes on one progress report at a time: the first three, then always the newest.

    Later reports in between are dropped. The connection that reads progress also reads the answers of other
    calls; they do not wait for a Broker that is slow to accept a report.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._taken = 0
        self._waiting = deque[tuple[float, float | None, str]]()
        self._passing: asyncio.Task[None] | None = None

    async def take_progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Store the server's progress for the next report, and return at once."""
        self._taken += 1
        if self._waiting and self._taken > FIRST_REPORTS + 1:
            self._waiting.pop()  # it is none of the first, and newer ones replace it
        self._waiting.append((progress, total, message or ""))
        if self._passing is None or self._passing.done():
            self._passing = asyncio.create_task(self._pass_on())

    async def wait_until_passed(self) -> None:
        """Wait until nothing is left to pass on."""
        if self._passing is not None:
            await self._passing

    def drop(self) -> None:
        """Drop the reports not yet passed on."""
        if self._passing is not None:
            self._passing.cancel()

    async def _pass_on(self) -> None:
        while self._waiting:
            await self._report(*self._waiting.popleft())


def result_of(result: CallToolResult, tool: str) -> object:
    """Return the result of a call; raise `ToolError` for a failure.

    The result is the structured content if there is any, else the content: a single block by itself,
    otherwise a list of blocks.
    """
    if result.is_error:
        raise ToolError(_join_texts(result.content) or f"the tool {tool} failed, and does not say why")
    if result.structured_content is not None:
        return result.structured_content
    blocks = [_block_result(block) for block in result.content]
    return blocks[0] if len(blocks) == 1 else blocks


def _block_result(block: ContentBlock) -> object:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return _media_result(block.mime_type, block.data)
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return resource.text
        case EmbeddedResource(resource=BlobResourceContents() as resource):
            return _media_result(resource.mime_type or "application/octet-stream", resource.blob)
    return block.model_dump(mode="json", by_alias=True, exclude_none=True)


def _media_result(kind: str, data: str) -> object:
    try:
        return Media.from_base64(kind, data).to_document()
    except ValueError:
        raise ToolError("the MCP server sent what is no base64") from None


def _join_texts(content: Sequence[ContentBlock]) -> str:
    return "\n".join(block.text for block in content if isinstance(block, TextContent)).strip()


_CHECK_SECONDS = 600.0
_HIDDEN = b"[hidden]"

Place = tuple[str, str | None]
"""A server's name or URL, and the credential to call it with."""


class McpCaller:
    """Calls MCP servers named by the owner, or at allowed URLs."""

    def __init__(self, egress: EgressClient, named: Sequence[NamedServer], differing: Gauge) -> None:
        self._egress = egress
        self._named = {one.name: one for one in named}
        self._servers: dict[Place, Server] = {}
        self._comparer = ToolComparer(differing)
        self._checked: dict[Place, float] = {}
        self._checks: set[asyncio.Task[None]] = set()

    def expect_tool(self, rule: McpRule, parameters: Mapping[str, object]) -> ExpectedTool:
        """Add the tool of an EventType to the comparison with its server.

        It is compared as long as the caller holds the returned object.
        """
        return self._comparer.expect_tool(rule.server, rule.tool, parameters)

    async def keep_running(self, name: str, note: Callable[[str], None]) -> None:
        """Keep a named command running until cancelled, even without calls.

        Calls `note` after each start: with "", or the reason why it failed.
        """
        server = self._servers[name, None] = self._make_command(self._named[name], None)
        await server.keep_running(note)

    async def call_tool(self, rule: McpRule, arguments: Mapping[str, object], call: Call) -> object:
        """Return the result of a call by a rule.

        Raises `ToolError`, `OutcomeUnknown`, and `Retry` if the Broker should deliver it again.
        """
        name = urlsplit(rule.server).hostname or rule.server
        trace.get_current_span().set_attributes(
            {"mcp.method.name": "tools/call", "gen_ai.tool.name": rule.tool}
        )
        with convert_failures(f"the MCP server {name}", call, repeatable=call.repeatable):
            try:
                server = self._server_for(rule)
                result = await self._call_server(server, rule, arguments, call)
                self._check_soon((rule.server, rule.credential), server)
                return self._without_secrets(rule, result_of(result, rule.tool))
            except ToolError as error:
                raise ToolError(str(self._without_secrets(rule, str(error)))) from None

    async def _call_server(
        self, server: Server, rule: McpRule, arguments: Mapping[str, object], call: Call
    ) -> CallToolResult:
        wanted = ServerCall(rule.tool, arguments, rule.timeout, call.person)
        if (send_report := call.report) is None:
            return await server.call_tool(wanted)

        async def pass_report(done: float, total: float | None, message: str) -> None:
            await send_report(done, total, str(self._without_secrets(rule, message)))

        async with passed_on(pass_report) as on_progress:
            return await server.call_tool(replace(wanted, on_progress=on_progress))

    async def close(self) -> None:
        """Cancel the checks, and close every server."""
        for check in self._checks:
            check.cancel()
        await asyncio.gather(*self._checks, return_exceptions=True)
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    def _check_soon(self, place: Place, server: Server, *, now: bool = False) -> None:
        """Start to compare a server's tools with the EventTypes, if due.

        It is due at intervals, and with `now`, for tools that may have changed.
        """
        if not now and time.monotonic() - self._checked.get(place, -_CHECK_SECONDS) < _CHECK_SECONDS:
            return
        self._checked[place] = time.monotonic()
        check = asyncio.create_task(self._check_tools(place, server))
        self._checks.add(check)
        check.add_done_callback(self._checks.discard)

    async def _check_tools(self, place: Place, server: Server) -> None:
        try:
            self._comparer.compare_tools(place[0], await server.list_tools())
        except Exception as error:  # calls report the fault of the server
            logger.info(
                "the tools of the MCP server %s cannot be compared: %s",
                urlsplit(place[0]).hostname or place[0],
                error,
            )

    def _without_secrets(self, rule: McpRule, value: object) -> object:
        """Return a server's output without its credential and secrets."""
        entry = self._named.get(rule.server)
        secrets = entry.secrets if entry else ()
        server = self._servers.get((rule.server, rule.credential))
        auth = server.auth if isinstance(server, HttpServer) else None
        if auth is None and not secrets:
            return value
        text = dumps(value)
        if auth is not None:
            text = auth.hide(text)
        for secret in secrets:
            text = text.replace(dumps(secret)[1:-1], _HIDDEN)
        hidden: object = loads(text)
        return hidden

    def _server_for(self, rule: McpRule) -> Server:
        place = (rule.server, rule.credential)
        if place not in self._servers:
            self._servers[place] = self._make_server(rule)
        server = self._servers[place]
        if isinstance(server, HttpServer):
            url = httpx2.URL(server.url)
            self._egress.allowed.find(url.scheme, url.host, url.port)
        return server

    def _make_server(self, rule: McpRule) -> Server:
        if "://" in rule.server:
            return self._by_url(rule.server, rule.credential)
        entry = self._named.get(rule.server)
        if entry is None:
            raise NotAllowed(
                f"the adapter knows no MCP server {rule.server!r}; its owner can add it ({SETTING})"
            )
        if entry.url:
            return self._by_url(entry.url, rule.credential)
        return self._make_command(entry, rule.credential)

    def _make_command(self, entry: NamedServer, credential: str | None) -> CommandServer:
        place = (entry.name, credential)
        server = CommandServer(entry, lambda: self._check_soon(place, server, now=True))
        return server

    def _by_url(self, url: str, credential: str | None) -> HttpServer:
        auth = make_auth(self._egress.credentials, credential, url) if credential else None
        client = httpx2.AsyncClient(
            transport=LimitedTransport(self._egress.client, self._egress.limit),
            auth=auth,
            timeout=None,
            trust_env=False,
        )
        return HttpServer(url, client, auth)
