"""The schema of a tool's results over MCP, and results that do not fit it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from beckon_contract.catalogue.builder import Catalogue
from tests.agent.mcp.conftest import StartMcp
from tests.agent.mcp.mcp_server import LEGACY, MODERN, McpServer

pytestmark = pytest.mark.asyncio(loop_scope="module")
both = pytest.mark.parametrize("mode", [LEGACY, MODERN])

NUMBERS = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"long": {"type": "integer", "x-unit": "m"}},
    "required": ["long"],
}


@pytest_asyncio.fixture(loop_scope="module")
async def server(start_mcp: StartMcp) -> AsyncIterator[McpServer]:
    """A face as it is served by default."""
    async with start_mcp() as running:
        yield running


def declare_returns(server: McpServer, name: str, schema: dict[str, Any]) -> None:
    """Let one tool be the only one, with this schema of its results."""
    tool = server.catalogue.current.tools[name]
    server.catalogue.current = Catalogue({name: replace(tool, returns=schema)})


@both
async def test_the_return_type_of_a_function_is_the_output_schema(server: McpServer, mode: str) -> None:
    async with server.client(mode) as client:
        listed = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}

    assert listed["test_measure"] == {"type": "object", "additionalProperties": True}
    assert listed["test_echo"] is None
    assert listed["test_picture"] is None


@both
async def test_a_result_that_fits_is_structured_content(server: McpServer, mode: str) -> None:
    declare_returns(server, "test_measure", NUMBERS)

    async with server.client(mode) as client:
        (listed,) = (await client.list_tools()).tools
        result = await client.call_tool("test_measure", {"digits": 2})

    assert listed.output_schema == NUMBERS
    assert (result.structured_content, result.is_error) == ({"long": 11}, False)


@both
async def test_a_result_that_does_not_fit_is_an_error_with_its_path(server: McpServer, mode: str) -> None:
    declare_returns(server, "test_measure", {**NUMBERS, "properties": {"long": {"maximum": 10}}})

    async with server.client(mode) as client:
        result = await client.call_tool("test_measure", {"digits": 2})

    assert result.is_error
    error = result.structured_content["error"]
    assert error["reason"] == "tool_failed"
    assert "`long`: 11 is greater than the maximum of 10" in error["message"]
    assert "beckon.dev/returns" in error["message"]


@both
async def test_a_failure_of_the_tool_need_not_fit(server: McpServer, mode: str) -> None:
    declare_returns(server, "test_fail", NUMBERS)

    async with server.client(mode) as client:
        result = await client.call_tool("test_fail", {"kind": "refuse"})

    assert result.is_error
    assert result.structured_content["error"]["message"] == "this tool was asked to refuse"


async def test_a_schema_of_no_object_is_for_clients_that_take_it(server: McpServer) -> None:
    declare_returns(server, "test_echo", {"type": "string", "maxLength": 2})

    async with server.client(MODERN) as client:
        (listed,) = (await client.list_tools()).tools
        short = await client.call_tool("test_echo", {"text": "ab"})
        long = await client.call_tool("test_echo", {"text": "abc"})
    async with server.client(LEGACY) as client:
        (older,) = (await client.list_tools()).tools
        unchecked = await client.call_tool("test_echo", {"text": "abc"})

    assert listed.output_schema == {"type": "string", "maxLength": 2}
    assert short.structured_content == "ab"
    assert long.is_error
    assert "the result: " in long.structured_content["error"]["message"]
    assert older.output_schema is None
    assert (unchecked.structured_content, unchecked.is_error) == (None, False)
