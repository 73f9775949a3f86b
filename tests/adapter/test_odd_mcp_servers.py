"""The bridge to servers that answer with no MCP, or none of a known revision: one line for the model."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from beckon_runtime.egress import AllowedHost
from tests.adapter.plain_api import adapting, egress_to
from tests.adapter.test_mcp_servers import call_event, tool_of
from tests.serving import served
from tests.tools.serving import Caller

INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "odd", "version": "1"},
}
ADD = {"name": "add", "inputSchema": {"type": "object"}}
THREE = {"content": [{"type": "text", "text": "3"}], "structuredContent": {"sum": 3}}
USUAL: Mapping[str, object] = {
    "initialize": INITIALIZED,
    "tools/list": {"tools": [ADD]},
    "tools/call": THREE,
}
NO_SCHEMA = {"type": "object", "properties": {"sum": {"type": 7}}}
INVALID = "7 is not valid under any of the given schemas"
NOT_MCP = "the MCP server's answer is not MCP; is there another server at its address?"


@asynccontextmanager
async def odd_server(results: Mapping[str, object]) -> AsyncIterator[Caller]:
    """Serve an adapter, and an MCP server that answers the requests of each method with these results."""

    async def answer(request: Request) -> Response:
        message: dict[str, Any] = await request.json()
        if "id" not in message:
            return Response(status_code=202)
        known = {"jsonrpc": "2.0", "id": message["id"]}
        if (result := results.get(message["method"])) is None:
            return JSONResponse({**known, "error": {"code": -32601, "message": "no such\n\tmethod"}})
        return JSONResponse({**known, "result": result})

    app = Starlette(routes=[Route("/mcp", answer, methods=["POST"])])
    async with served(app, lifespan="off") as url:
        egress = egress_to(AllowedHost(host=url, private=True))
        async with adapting(egress, tool_of(f"{url}/mcp", "add")) as adapter:
            yield adapter


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ({}, None),
        ({"initialize": {"page": "s3cret"}}, NOT_MCP),
        ({"tools/list": {"tools": [{"title": "s3cret"}]}}, NOT_MCP),
        (
            {"tools/call": {"content": "s3cret"}},
            "the MCP server's answer is not MCP; the call may have had its effect",
        ),
        (
            {"initialize": {**INITIALIZED, "protocolVersion": "1999-01-01"}},
            "the MCP server speaks a version of MCP that the adapter does not know: 1999-01-01",
        ),
        (
            {"tools/list": {"tools": [{**ADD, "outputSchema": NO_SCHEMA}]}},
            f"the tool ran, but its outputSchema is no JSON Schema: {INVALID}",
        ),
    ],
)
async def test_the_model_reads_one_line(
    odd: Mapping[str, object], words: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    async with odd_server({**USUAL, **odd}) as adapter:
        result = await adapter.result(call_event({}))

    assert isinstance(result, dict)
    assert result.get("error", {}).get("message") == words
    assert all(record.exc_info is None for record in caplog.records)


async def test_a_message_of_the_server_is_one_line() -> None:
    async with odd_server({}) as adapter:
        result = await adapter.result(call_event({}))

    assert isinstance(result, dict)
    assert result["error"]["message"] == "the MCP server answered: no such method (-32601)"
