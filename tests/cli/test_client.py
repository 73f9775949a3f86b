"""The command line's client beside a real agent: what its streams may hold."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from beckon_cli.client import AgentClient
from beckon_cli.errors import CommandError
from tests.agent.conftest import CLOSED
from tests.agent.running_agent import running_agent, user
from tests.agent.scripted_model import says
from tests.serving import served

LINES = "one\u2028two\u2029three\x85four\x0bfive\x0csix\r\nseven"


async def test_an_answer_may_hold_every_line_break_of_unicode(tmp_path: Path) -> None:
    async with running_agent(CLOSED, tmp_path, says(LINES)) as agent, AgentClient(agent.url) as client:
        chunks = [chunk async for chunk in client.stream_chat("beckon", [user("go")])]

    deltas = [choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"]]
    assert "".join(deltas) == LINES


REQUESTS: list[tuple[Callable[[AgentClient], Awaitable[Any]], str]] = [
    (lambda client: client.list_agents(), "GET /v1/models"),
    (lambda client: client.get_catalogue(), "GET /tools"),
    (lambda client: client.get_page("/runs"), "GET /runs"),
    (lambda client: client.get_response("resp_1"), "GET /v1/responses/resp_1"),
    (lambda client: client.create_response({}), "POST /v1/responses"),
    (lambda client: client.decide_approval("mcpr_1", {}), "POST /approvals/mcpr_1"),
    (lambda client: client.answer_input("inreq_1", {}), "POST /inputs/inreq_1"),
    (lambda client: anext(client.call_tool("add", {})), "POST /tools/add"),
]


@pytest.mark.parametrize("body", ["<html>It works!</html>", '{"a": 1}', '["data"]', ""])
async def test_another_server_at_the_port_is_named_as_such(body: str) -> None:
    async def answer(_: Request) -> Response:
        return Response(body)

    stranger = Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])
    async with served(stranger) as url, AgentClient(url) as client:
        for send, request in REQUESTS:
            with pytest.raises(
                CommandError, match=f"{url} is no Beckon agent .*: its answer to {request} has no"
            ):
                await send(client)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('"not here"', 'answered 404: "not here"'),
        ('{"error": "not here"}', "not here"),
        ("[]", "answered 404"),
    ],
)
async def test_a_refusal_of_another_server_is_one_line(body: str, words: str) -> None:
    async def refuse(_: Request) -> Response:
        return Response(body, 404)

    async with served(Starlette(routes=[Route("/{path:path}", refuse)])) as url, AgentClient(url) as client:
        with pytest.raises(CommandError, match=words):
            await client.list_agents()
