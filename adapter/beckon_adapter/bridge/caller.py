"""A call to an MCP server, with its progress and its result."""

import asyncio
import base64
import binascii
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from urllib.parse import urlsplit

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
)
from opentelemetry import trace
from prometheus_client import Gauge

from beckon_adapter.bridge.agreement import Agreement, Expected
from beckon_adapter.bridge.commands import CommandServer
from beckon_adapter.bridge.rule import McpRule
from beckon_adapter.bridge.servers import HttpServer, Server
from beckon_adapter.bridge.settings import SETTING, NamedServer
from beckon_adapter.calls import Call, Report
from beckon_adapter.outbound.credentials import Credentials, NoCredential
from beckon_adapter.outbound.egress import EgressClient, TooLarge, Unreachable
from beckon_adapter.outbound.hosts import NotAllowed
from beckon_adapter.outbound.limited import LimitedTransport
from beckon_contract.jsontext import dumps, loads
from beckon_tools.errors import OutcomeUnknown, Retry, ToolError
from beckon_tools.results import Media


@contextlib.asynccontextmanager
async def passed_on(report: Report) -> AsyncIterator[ProgressFnT]:
    """Yield a progress callback for the server's notifications.

    On success the newest progress is reported before the call is answered; on an error it is dropped.
    """
    newest = _Newest(report)
    try:
        yield newest.hear
        await newest.done()
    finally:
        newest.drop()


class _Newest:
    """Passes on one progress report at a time, always the newest.

    Reports in between are dropped. The connection that reads progress also reads the answers of other
    calls; they do not wait for a Broker that is slow to accept a report.
    """

    def __init__(self, report: Report) -> None:
        self._report = report
        self._next: tuple[float, float | None, str] | None = None
        self._passing: asyncio.Task[None] | None = None

    async def hear(self, progress: float, total: float | None, message: str | None) -> None:
        """Store the server's progress for the next report, and return at once."""
        self._next = progress, total, message or ""
        if self._passing is None or self._passing.done():
            self._passing = asyncio.create_task(self._pass_on())

    async def done(self) -> None:
        """Wait until nothing is left to pass on."""
        if self._passing is not None:
            await self._passing

    def drop(self) -> None:
        """Drop the reports not yet passed on."""
        if self._passing is not None:
            self._passing.cancel()

    async def _pass_on(self) -> None:
        while self._next is not None:
            (done, total, message), self._next = self._next, None
            await self._report(done, total, message)


def result_of(result: CallToolResult, tool: str) -> object:
    """Return the result of a call; raise `ToolError` for a failure.

    The result is the structured content if there is any, else the content: a single block by itself,
    otherwise a list of blocks.
    """
    if result.is_error:
        raise ToolError(_words(result.content) or f"the tool {tool} failed, and does not say why")
    if result.structured_content is not None:
        return result.structured_content
    found = [_block(block) for block in result.content]
    return found[0] if len(found) == 1 else found


def _block(block: ContentBlock) -> object:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return _media(block.mime_type, block.data)
        case EmbeddedResource(resource=TextResourceContents() as resource):
            return resource.text
        case EmbeddedResource(resource=BlobResourceContents() as resource):
            return _media(resource.mime_type or "application/octet-stream", resource.blob)
    return block.model_dump(mode="json", by_alias=True, exclude_none=True)


def _media(kind: str, data: str) -> object:
    try:
        return Media(kind, base64.b64decode(data, validate=True)).document()
    except binascii.Error:
        raise ToolError("the MCP server sent what is no base64") from None


def _words(content: Sequence[ContentBlock]) -> str:
    return "\n".join(block.text for block in content if isinstance(block, TextContent)).strip()


logger = logging.getLogger(__name__)

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
        self._agreement = Agreement(differing)
        self._checked: dict[Place, float] = {}
        self._checks: set[asyncio.Task[None]] = set()

    def expect(self, rule: McpRule, parameters: Mapping[str, object]) -> Expected:
        """Add the tool of an EventType to the comparison with its server.

        It is compared as long as the caller holds the returned object.
        """
        return self._agreement.expect(rule.server, rule.tool, parameters)

    async def keep(self, name: str, ready: Callable[[], None]) -> None:
        """Keep a named command running until cancelled, even without calls.

        Calls `ready` after each start.
        """
        server = self._servers[name, None] = self._command(self._named[name], None)
        await server.keep(ready)

    async def call(self, rule: McpRule, arguments: Mapping[str, object], call: Call) -> object:
        """Return the result of a call by a rule.

        Raises `ToolError`, `OutcomeUnknown`, and `Retry` if the Broker should deliver it again.
        """
        name = urlsplit(rule.server).hostname or rule.server
        trace.get_current_span().set_attributes(
            {"mcp.method.name": "tools/call", "gen_ai.tool.name": rule.tool}
        )
        try:
            server = self._server(rule)
            result = await self._called(server, rule, arguments, call)
            self._check_soon((rule.server, rule.credential), server)
            return self._without_secrets(rule, result_of(result, rule.tool))
        except ToolError as error:
            raise ToolError(str(self._without_secrets(rule, str(error)))) from None
        except (NotAllowed, NoCredential) as error:
            logger.warning("event %s was not sent: %s", call.id, error)
            raise ToolError(str(error)) from None
        except TooLarge as error:
            raise ToolError(f"the MCP server {name} {error}") from None
        except Unreachable as error:
            raise _lost(name, error, call) from None

    async def _called(
        self, server: Server, rule: McpRule, arguments: Mapping[str, object], call: Call
    ) -> CallToolResult:
        if (send_report := call.report) is None:
            return await server.call(rule.tool, arguments, rule.timeout)

        async def report(done: float, total: float | None, message: str) -> None:
            await send_report(done, total, str(self._without_secrets(rule, message)))

        async with passed_on(report) as heard:
            return await server.call(rule.tool, arguments, rule.timeout, heard)

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
        check = asyncio.create_task(self._check(place, server))
        self._checks.add(check)
        check.add_done_callback(self._checks.discard)

    async def _check(self, place: Place, server: Server) -> None:
        try:
            self._agreement.compare(place[0], await server.tools())
        except Exception as error:  # calls tell what is wrong with the server
            logger.info(
                "the tools of the MCP server %s cannot be compared: %s",
                urlsplit(place[0]).hostname or place[0],
                error,
            )

    def _without_secrets(self, rule: McpRule, value: object) -> object:
        """Return a server's output without its credential and secrets."""
        entry = self._named.get(rule.server)
        secrets = entry.secrets if entry else ()
        if rule.credential is None and not secrets:
            return value
        text = dumps(value)
        if rule.credential is not None:
            url = httpx2.URL(entry.url if entry else rule.server)
            text = self._egress.credentials.seal(rule.credential, url).hide(text)
        for secret in secrets:
            text = text.replace(dumps(secret)[1:-1], _HIDDEN)
        hidden: object = loads(text)
        return hidden

    def _server(self, rule: McpRule) -> Server:
        place = (rule.server, rule.credential)
        if place not in self._servers:
            self._servers[place] = self._connect(rule)
        server = self._servers[place]
        if isinstance(server, HttpServer):
            url = httpx2.URL(server.url)
            self._egress.allowed.find(url.scheme, url.host, url.port)
        return server

    def _connect(self, rule: McpRule) -> Server:
        if "://" in rule.server:
            return self._by_url(rule.server, rule.credential)
        entry = self._named.get(rule.server)
        if entry is None:
            raise NotAllowed(
                f"the adapter knows no MCP server {rule.server!r}; its owner can add it ({SETTING})"
            )
        if entry.url:
            return self._by_url(entry.url, rule.credential)
        return self._command(entry, rule.credential)

    def _command(self, entry: NamedServer, credential: str | None) -> CommandServer:
        place = (entry.name, credential)
        server = CommandServer(entry, lambda: self._check_soon(place, server, now=True))
        return server

    def _by_url(self, url: str, credential: str | None) -> HttpServer:
        client = httpx2.AsyncClient(
            transport=LimitedTransport(self._egress.client, self._egress.limit),
            auth=_Sealing(self._egress.credentials, credential) if credential else None,
            timeout=None,
            trust_env=False,
        )
        return HttpServer(url, client)


class _Sealing(httpx2.Auth):
    """Adds a credential to requests to its hosts, and refuses others."""

    def __init__(self, credentials: Credentials, name: str) -> None:
        self._credentials = credentials
        self._name = name

    def auth_flow(self, request: httpx2.Request):  # type: ignore[no-untyped-def]  # generator of httpx2
        sealed = self._credentials.seal(self._name, request.url)
        request.headers.update(sealed.headers)
        request.url = request.url.copy_merge_params(sealed.query)
        yield request


def _lost(name: str, error: Unreachable, call: Call) -> Exception:
    """Return the exception for a call without an answer.

    It is `Retry` if the call is repeatable or was not sent, else `OutcomeUnknown`.
    """
    if call.repeatable or not error.sent:
        return Retry(f"the MCP server {name} {error}")
    return OutcomeUnknown(
        f"the MCP server {name} {error}; the call may have had its effect, and was not repeated"
    )
