"""MCP servers at URLs, and errors of all MCP servers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import httpx2
from anyio import BrokenResourceError, ClosedResourceError
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import CONNECTION_CLOSED, PARSE_ERROR, REQUEST_TIMEOUT, CallToolResult, Tool
from pydantic import ValidationError

from beckon_adapter.egress.client import TooLarge, Unreachable
from beckon_adapter.egress.hosts import NoCredential
from beckon_adapter.mcp.authentication import ServerAuth
from beckon_adapter.mcp.forms import ServerForms
from beckon_runtime.egress import NotAllowed
from beckon_tools.errors import OutcomeUnknown, ToolError
from beckon_tools.person import Person

LOST = (OSError, httpx2.HTTPError, ClosedResourceError, BrokenResourceError)
_LONGEST = 300  # characters of a server's own words
_OURS = (NotAllowed, NoCredential, TooLarge)


@contextlib.contextmanager
def convert_errors(sent: Callable[[], bool]) -> Iterator[None]:
    """Convert the errors of a call to those of outgoing requests.

    Connections raise groups of errors. `sent` returns True once the server may have received the call.
    """
    try:
        yield
    except TimeoutError:
        raise Unreachable("did not answer in time", sent=sent()) from None
    except Exception as error:
        raise _to_egress_error(error, sent=sent()) from None


def is_lost(error: Exception) -> bool:
    """Return True if an error means a lost connection, not an answer."""
    return error.code == CONNECTION_CLOSED if isinstance(error, MCPError) else isinstance(error, LOST)


def first_error_text(error: BaseException) -> str:
    """Return the type and message of an error, or of a group's first."""
    one = next(iterate_errors(error))
    return f"{type(one).__name__}: {one}"


def _to_egress_error(error: Exception, *, sent: bool) -> Exception:
    errors = list(iterate_errors(error))
    for one in errors:
        if isinstance(one, (*_OURS, Unreachable)):
            return one
    for one in errors:
        if isinstance(one, ValidationError) or (isinstance(one, MCPError) and one.code == PARSE_ERROR):
            return _not_mcp(sent=sent)
        if isinstance(one, MCPError) and one.code not in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
            words = " ".join(one.message.split())[:_LONGEST]
            return ToolError(f"the MCP server answered: {words} ({one.code})")
        if isinstance(one, RuntimeError) and (refusal := _refusal_of_client(one)):
            return ToolError(refusal)
    if any(isinstance(one, (MCPError, *LOST)) for one in errors):
        return Unreachable(f"is lost ({type(errors[0]).__name__})", sent=sent)
    return error


def _not_mcp(*, sent: bool) -> ToolError:
    """Return the error of an answer that the client cannot read; its own error repeats what was answered."""
    if sent:
        return OutcomeUnknown("the MCP server's answer is not MCP; the call may have had its effect")
    return ToolError("the MCP server's answer is not MCP; is there another server at its address?")


def _refusal_of_client(error: RuntimeError) -> str:
    """Return why the SDK's client refused what a server sent, "" for another error.

    For a result that does not fit, the cause is jsonschema's error, with the path and the problem.
    """
    path, message = (getattr(error.__cause__, name, None) for name in ("json_path", "message"))
    first_line = str(error).partition("\n")[0]
    what, _, problem = first_line.partition(": ")
    if what.startswith("Invalid schema for tool"):
        return f"the tool ran, but its outputSchema is no JSON Schema: {problem[:_LONGEST]}"
    if path and message:
        problem = f"{path}: {message}"[:_LONGEST]
        return f"the tool ran, but its result does not fit its outputSchema: {problem}"
    if what.startswith("Unsupported protocol version"):
        return f"the MCP server speaks a version of MCP that the adapter does not know: {problem[:_LONGEST]}"
    return ""


def iterate_errors(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, or each error of a group, nested groups included."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from iterate_errors(inner)
    else:
        yield error


LISTING_SECONDS = 30.0
_MOST_TOOLS = 2000


@dataclass(frozen=True, slots=True)
class ServerCall:
    """A call of a tool, within `seconds`.

    `on_progress` receives the server's progress; its forms are put to the `person`.
    """

    tool: str
    arguments: Mapping[str, Any]
    seconds: float
    person: Person
    on_progress: ProgressFnT | None = None

    async def send_by(self, client: Client) -> CallToolResult:
        """Make the call by a connected client."""
        arguments = dict(self.arguments)
        return await client.call_tool(self.tool, arguments, progress_callback=self.on_progress)


class Server(Protocol):
    """One MCP server."""

    async def call_tool(self, call: ServerCall) -> CallToolResult:
        """Return the result of a tool.

        Raises `InputRequired`, `Unreachable`, `ToolError` if the server
        refuses the call, and the errors of outgoing requests.
        """
        ...

    async def list_tools(self) -> Sequence[Tool]:
        """Return the server's current tools; raises as `call` does."""
        ...

    async def close(self) -> None:
        """Close the server's connection or process."""
        ...


@dataclass(frozen=True, slots=True)
class HttpServer:
    """A server at a URL, with a client allowed to reach it, and the credential that this client sends."""

    url: str
    client: httpx2.AsyncClient
    auth: ServerAuth | None = None

    async def call_tool(self, call: ServerCall) -> CallToolResult:
        """Connect, list the tools, call the tool, and disconnect.

        By its list the client knows which arguments to repeat in headers (`x-mcp-header`), and the schema of
        the result. It would list the tools after the call otherwise, whose effect could then be lost.
        """
        forms = ServerForms()
        # Around the connection: at its end it makes a group of each error inside it.
        return await forms.answer_during(call.person, self._call_connected(call, forms))

    async def _call_connected(self, call: ServerCall, forms: ServerForms) -> CallToolResult:
        sent = False
        with convert_errors(lambda: sent):
            async with asyncio.timeout(call.seconds), self._open_connection(forms) as client:
                await read_tool_list(client)
                sent = True
                return await call.send_by(client)

    async def list_tools(self) -> Sequence[Tool]:
        """Connect, list the tools, and disconnect."""
        with convert_errors(lambda: False):
            async with asyncio.timeout(LISTING_SECONDS), self._open_connection() as client:
                return await read_tool_list(client)

    async def close(self) -> None:
        """Do nothing: there is no connection between calls."""

    def _open_connection(self, forms: ServerForms | None = None) -> Client:
        transport = streamable_http_client(self.url, http_client=self.client)
        return Client(transport, cache=None, elicitation_callback=forms)


async def read_tool_list(client: Client) -> Sequence[Tool]:
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


class LimitedTransport(httpx2.AsyncBaseTransport):
    """Sends through an existing client; `limit` is in bytes per answer.

    The client belongs to other code and is used as it is.
    """

    def __init__(self, client: httpx2.AsyncClient, limit: int) -> None:
        self._client = client
        self._limit = limit

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the answer to a request; reading it raises `TooLarge`."""
        request.headers["accept-encoding"] = "identity"
        answer = await self._client.send(request, stream=True, auth=None, follow_redirects=False)
        if answer.headers.get("content-encoding", "identity") != "identity":
            await answer.aclose()
            raise httpx2.DecodingError("answered in an encoding that was not requested", request=request)
        return httpx2.Response(
            answer.status_code, headers=answer.headers, stream=_Limited(answer, self._limit), request=request
        )


class _Limited(httpx2.AsyncByteStream):
    def __init__(self, answer: httpx2.Response, limit: int) -> None:
        self._answer = answer
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._answer.aiter_raw():
            size += len(chunk)
            if size > self._limit:
                raise TooLarge(f"answered with more than {self._limit} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()
