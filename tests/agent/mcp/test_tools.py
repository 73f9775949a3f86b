"""Tools over MCP, by the SDK's own client, in both revisions."""

import base64
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import cycle
from types import MappingProxyType

import httpx2
import pytest
import pytest_asyncio
from aiohttp import ClientSession
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult, ImageContent, TextContent
from prometheus_client.parser import text_string_to_metric_families

from beckon_agent.auth.quotas import LimitReached
from beckon_agent.core.run_events import CallFinished
from beckon_agent.core.run_types import Agent
from beckon_agent.tool_calls.caller import Dispatcher, ToolCaller
from beckon_agent.tool_calls.validation import PreparedCall
from beckon_contract.catalogue.builder import Catalogue
from tests.agent.conftest import CLOSED
from tests.agent.mcp.conftest import StartMcp
from tests.agent.mcp.mcp_server import LEGACY, MODERN, McpServer
from tests.agent.tools_for_tests import BENCH

pytestmark = pytest.mark.asyncio(loop_scope="module")
both = pytest.mark.parametrize("mode", [LEGACY, MODERN])


@pytest_asyncio.fixture(loop_scope="module")
async def server(start_mcp: StartMcp) -> AsyncIterator[McpServer]:
    """A face as it is served by default."""
    async with start_mcp() as running:
        yield running


def text(result: CallToolResult) -> str:
    """Return the only text of a result."""
    (content,) = result.content
    assert isinstance(content, TextContent), content
    return content.text


@both
async def test_tools_are_listed_with_what_their_eventtypes_say(server: McpServer, mode: str) -> None:
    async with server.client(mode) as client:
        listed = (await client.list_tools()).tools

    echo = next(tool for tool in listed if tool.name == "test_echo")
    assert [tool.name for tool in listed] == sorted(server.catalogue.current.tools)
    assert (echo.title, echo.description) == ("test.echo", "Say something again.")
    assert echo.input_schema == server.catalogue.current.tools["test_echo"].parameters
    assert echo.annotations is not None
    assert echo.annotations.model_dump(by_alias=True, exclude_none=True) == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": True,
        "openWorldHint": True,
    }


@both
async def test_hints_are_those_of_the_eventtype(server: McpServer, mode: str) -> None:
    echo = server.catalogue.current.tools["test_echo"]
    server.catalogue.current = Catalogue({"test_echo": replace(echo, read_only=True, idempotent=True)})

    async with server.client(mode) as client:
        (listed,) = (await client.list_tools()).tools

    server.catalogue.current = Catalogue({"test_echo": replace(echo, destructive=False)})
    async with server.client(mode) as client:
        (adding,) = (await client.list_tools()).tools

    assert adding.annotations is not None
    assert (adding.annotations.read_only_hint, adding.annotations.destructive_hint) == (False, False)
    assert listed.annotations is not None
    assert listed.annotations.read_only_hint is True
    assert listed.annotations.destructive_hint is False
    assert listed.annotations.idempotent_hint is True


@both
async def test_a_schema_reaches_the_client_whole(server: McpServer, mode: str) -> None:
    schema = {
        "type": "object",
        "$defs": {"size": {"enum": ["s", "m"], "x-note": 1}},
        "properties": {"size": {"$ref": "#/$defs/size"}, "type": {"type": ["string", "null"]}},
        "additionalProperties": False,
        "allOf": [{"if": {"required": ["type"]}, "then": {"required": ["size"]}}],
    }
    echo = server.catalogue.current.tools["test_echo"]
    server.catalogue.current = Catalogue({"test_echo": replace(echo, parameters=schema)})

    async with server.client(mode) as client:
        (listed,) = (await client.list_tools()).tools

    assert listed.input_schema == schema


@both
async def test_thousands_of_tools_are_listed_page_by_page(server: McpServer, mode: str) -> None:
    echo = server.catalogue.current.tools["test_echo"]
    names = [f"tool_{number:04}" for number in range(2_500)]
    server.catalogue.current = Catalogue(MappingProxyType({name: replace(echo, name=name) for name in names}))
    found: list[str] = []
    pages = 0

    async with server.client(mode) as client:
        cursor = None
        while cursor is not None or not pages:
            page = await client.list_tools(cursor=cursor)
            found += [tool.name for tool in page.tools]
            cursor = page.next_cursor
            pages += 1

    assert found == names
    assert pages == 3


@both
async def test_a_tool_answers(server: McpServer, mode: str) -> None:
    async with server.client(mode) as client:
        result = await client.call_tool("test_echo", {"text": "é", "count": 2})

    assert (text(result), result.is_error) == ("éé", False)
    assert BENCH.calls == ["é"]
    assert server.service.running == 0


@both
async def test_an_agent_may_be_named_in_the_path(server: McpServer, mode: str) -> None:
    async with server.client(mode, path="/mcp/beckon") as client:
        assert text(await client.call_tool("test_echo", {"text": "x"})) == "x"


@both
async def test_arguments_may_be_left_out_where_there_are_none(server: McpServer, mode: str) -> None:
    async with server.client(mode) as client:
        assert text(await client.call_tool("test_plain")) == "schöne Grüße"


@both
async def test_a_picture_is_a_picture(server: McpServer, mode: str) -> None:
    async with server.client(mode) as client:
        (content,) = (await client.call_tool("test_picture")).content

    assert isinstance(content, ImageContent)
    assert content.mime_type == "image/png"
    assert base64.b64decode(content.data) == b"\x89PNG" * 300


@both
@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("test_echo", {"txt": "x"}, "invalid_arguments"),
        ("test_echo", {"text": "x", "count": 2**70}, "invalid_arguments"),
        ("test_hurry", {}, "timeout"),
        ("test_dead", {}, "undeliverable"),
        ("test_fail", {"kind": "refuse"}, "tool_failed"),
    ],
)
async def test_a_failure_is_a_result_that_a_model_can_act_on(
    server: McpServer, mode: str, name: str, arguments: dict[str, object], reason: str
) -> None:
    async with server.client(mode) as client:
        result = await client.call_tool(name, arguments)

    error = result.structured_content["error"]
    assert result.is_error
    assert error["reason"] == reason
    assert error["message"]
    assert json.loads(text(result)) == result.structured_content
    assert BENCH.calls == []


@both
async def test_a_tool_that_is_not_there_is_an_error_of_the_request(server: McpServer, mode: str) -> None:
    async with server.client(mode) as client:
        with pytest.raises(MCPError) as raised:
            await client.call_tool("test_ecko", {"text": "x"})

    assert raised.value.code == INVALID_PARAMS
    assert raised.value.message == "there is no tool 'test_ecko'; did you mean test_echo?"


@both
async def test_no_more_calls_are_made_than_the_agent_takes(start_mcp: StartMcp, mode: str) -> None:
    async with start_mcp(max_runs=1) as server, server.client(mode) as client:
        server.service.max_runs = 0
        result = await client.call_tool("test_echo", {"text": "x"})

    assert result.is_error
    assert result.structured_content["error"]["reason"] == "undeliverable"
    assert BENCH.calls == []


class Spent(ToolCaller):
    """Makes no call: its user has used up what there is."""

    async def make_call(
        self, call: PreparedCall, *, event_id: str, agent: Agent, remaining: float, may_be_late: bool = False
    ) -> CallFinished:
        raise LimitReached("too many calls", 2.5)


@both
async def test_a_limit_that_is_reached_says_when_to_try_again(server: McpServer, mode: str) -> None:
    async with ClientSession() as session, server.client(mode) as client:
        server.service.caller = Spent(Dispatcher(session, CLOSED))
        error = (await client.call_tool("test_echo", {"text": "x"})).structured_content["error"]

    assert error["reason"] == "denied"
    assert error["retry_after"] == 3


@both
async def test_calls_are_counted_like_those_of_agents(server: McpServer, mode: str) -> None:
    async with server.client(mode) as client:
        await client.call_tool("test_echo", {"text": "x"})

    counted = [
        sample
        for family in text_string_to_metric_families(
            server.service.metrics.to_text(tools=0, running=0).decode()
        )
        for sample in family.samples
        if sample.name == "beckon_agent_tool_calls_total"
    ]
    assert [(one.labels["tool"], one.labels["outcome"], one.value) for one in counted] == [
        ("test_echo", "answered", 1)
    ]


class InTurn(httpx2.AsyncHTTPTransport):
    """Sends each request to the next of several addresses, as a Service with no affinity may."""

    def __init__(self, *urls: str) -> None:
        super().__init__()
        self.sent: list[str] = []
        self._next = cycle(httpx2.URL(url) for url in urls)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        address = next(self._next)
        self.sent.append(f"{request.method} {address.port}")
        request.url = request.url.copy_with(host=address.host, port=address.port)
        return await super().handle_async_request(request)


@both
async def test_any_replica_answers_any_request(start_mcp: StartMcp, mode: str) -> None:
    async with start_mcp() as one, start_mcp() as other:
        in_turn = InTurn(one.url, other.url)
        async with httpx2.AsyncClient(transport=in_turn) as http:
            transport = streamable_http_client("http://beckon/mcp", http_client=http)
            async with Client(transport, mode="legacy" if mode == LEGACY else MODERN) as client:
                answers = [text(await client.call_tool("test_echo", {"text": str(n)})) for n in range(6)]

    assert answers == BENCH.calls == ["0", "1", "2", "3", "4", "5"]
    assert len({sent for sent in in_turn.sent if sent.startswith("POST")}) == 2


@both
async def test_a_long_integer_of_a_result_stays_whole(server: McpServer, mode: str) -> None:
    async with server.client(mode) as client:
        result = await client.call_tool("test_measure", {"digits": 30})

    assert result.structured_content == {"long": int("1" * 30)}
