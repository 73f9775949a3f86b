"""Calls that go straight to their tool: what is sent, and what every kind of answer becomes."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from beckon_agent.core.context import set_request_id
from beckon_agent.tool_calls.caller import Dispatcher
from beckon_agent.tool_calls.outcome import CallOutcome, OutgoingCall
from beckon_contract.resources.tools import Tool
from beckon_tools.app import app
from tests.agent.tool_calls.test_broker import REPLY, answering, closed_port, error, problem, replying
from tests.agent.tools_for_tests import BENCH, echo, hurry
from tests.serving import served
from tests.shim.support import Posted, Server, serving

TOOL = Tool(
    "echo",
    "team",
    "echo",
    "test.echo",
    None,
    "Say.",
    {"type": "object"},
    "spec.schemaData",
    dispatch="direct",
)
SHIM = "http://127.0.0.1:9"  # no one is there: no call may go that way


@pytest_asyncio.fixture
async def dispatcher() -> AsyncIterator[Dispatcher]:
    async with aiohttp.ClientSession() as session:
        yield Dispatcher(session, SHIM, max_reply_bytes=4000)


@pytest_asyncio.fixture
async def tool() -> AsyncIterator[Server]:
    """A server that answers as a test says."""
    async with serving() as server:
        yield server


def a_call(address: str, wait: float = 5.0, *, idempotent: bool = False, **arguments: object) -> OutgoingCall:
    tool = replace(TOOL, address=address, idempotent=idempotent)
    return OutgoingCall("run.0.0", tool, arguments, "/beckon/agents/default/beckon", wait)


async def test_a_tool_of_the_sdk_is_called_as_a_broker_would_call_it(dispatcher: Dispatcher) -> None:
    BENCH.reset()
    async with served(app(echo)) as url:
        call = a_call(url, text="hi", count=2)
        assert await dispatcher.send(call) == CallOutcome("hihi")
        assert await dispatcher.send(call) == CallOutcome("hihi")
        wrong = error(await dispatcher.send(replace(a_call(url, text=5), id="other")))
    assert BENCH.calls == ["hi"]
    assert wrong["reason"] == "invalid_arguments"
    assert "text" in wrong["message"]


async def test_the_event_is_in_binary_mode_and_says_when_no_one_waits_any_more(
    dispatcher: Dispatcher, tool: Server
) -> None:
    tool.behaviour = replying(b"1")
    set_request_id("request-1")
    await dispatcher.send(a_call(tool.url + "/in/here", wait=60, text="é"))
    (posted,) = tool.posts

    assert posted.path == "/in/here"
    assert posted.headers["ce-id"] == "run.0.0"
    assert posted.headers["ce-type"] == "test.echo"
    assert posted.headers["ce-source"] == "/beckon/agents/default/beckon"
    assert posted.headers["content-type"] == "application/json"
    assert posted.headers["prefer"] == "reply"
    assert posted.headers["x-request-id"] == "request-1"
    assert "ce-correlationid" not in posted.headers
    expiry = datetime.fromisoformat(posted.headers["ce-expirytime"].replace("Z", "+00:00"))
    assert timedelta(seconds=50) < expiry - datetime.now(UTC) <= timedelta(seconds=60)
    assert json.loads(posted.body) == {"text": "é"}


@pytest.mark.parametrize(
    ("body", "headers", "result"),
    [
        (b'{"a": 1}', REPLY, {"a": 1}),
        (
            b"\x00\x01",
            {**REPLY, "content-type": "image/png"},
            {"media_type": "image/png", "data_base64": "AAE="},
        ),
        (
            json.dumps({"specversion": "1.0", "id": "r", "source": "/t", "type": "x", "data": [1]}).encode(),
            {"content-type": "application/cloudevents+json"},
            [1],
        ),
        (b'{"plain": true}', {"content-type": "application/json; charset=utf-8"}, {"plain": True}),
        ("grüße".encode(), {"content-type": "text/plain"}, "grüße"),
    ],
    ids=["event", "bytes", "structured", "json", "text"],
)
async def test_an_event_plain_json_and_text_are_results(
    dispatcher: Dispatcher, tool: Server, body: bytes, headers: dict[str, str], result: object
) -> None:
    async def answer(_: Posted) -> web.Response:
        return web.Response(body=body, headers=headers)

    tool.behaviour = answer
    assert await dispatcher.send(a_call(tool.url)) == CallOutcome(result)


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_an_answer_without_a_body_is_a_result_where_any_answer_is_one(
    dispatcher: Dispatcher, tool: Server, status: int
) -> None:
    tool.behaviour = answering(status)
    call = a_call(tool.url)

    found = await dispatcher.send(replace(call, tool=replace(call.tool, reply="any")))

    assert found == CallOutcome(None)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (answering(200), "without a result (HTTP status 200)"),
        (answering(204), "without a result (HTTP status 204)"),
        (answering(202), "without a result (HTTP status 202)"),
        (answering(200, b"<html>", content_type="text/html"), "answered with text/html, which is no event"),
        (answering(200, b"{oops", content_type="application/json"), "not readable"),
        (answering(200, b"[" * 300 + b"]" * 300, content_type="application/json"), "not readable"),
        (replying(b"{oops"), "not readable"),
        (replying(b'"' + b"x" * 5000 + b'"'), "larger than 4000 bytes"),
        (answering(500, b"boom", content_type="text/plain"), "HTTP status 500: boom"),
        (
            answering(500, b"<h1>trace</h1>", content_type="text/html"),
            "HTTP status 500: Internal Server Error",
        ),
        (problem(500, detail="no disk"), "HTTP status 500: no disk"),
        (problem(404, title="No such path"), "HTTP status 404: No such path"),
        (answering(503), "HTTP status 503: Service Unavailable"),
    ],
    ids=[
        "empty",
        "no-content",
        "accepted",
        "html",
        "broken-json",
        "deep-json",
        "broken-event",
        "too-large",
        "text-of-500",
        "html-of-500",
        "detail-of-500",
        "title-of-404",
        "unavailable",
    ],
)
async def test_what_gives_no_result_is_a_failure_of_the_tool_and_is_not_repeated(
    dispatcher: Dispatcher, tool: Server, answer: Any, words: str
) -> None:
    tool.behaviour = answer
    failure = error(await dispatcher.send(a_call(tool.url)))

    assert failure["reason"] == "tool_failed"
    assert words in failure["message"]
    assert len(tool.posts) == 1


@pytest.mark.parametrize("status", [400, 422])
async def test_refused_arguments_are_reported_in_the_words_of_the_tool(
    dispatcher: Dispatcher, tool: Server, status: int
) -> None:
    tool.behaviour = problem(status, title="Bad", detail="text: is missing")

    failure = error(await dispatcher.send(a_call(tool.url)))

    assert failure == {"reason": "invalid_arguments", "message": "text: is missing"}


async def test_an_error_that_a_tool_replies_is_a_failure_in_its_own_words(
    dispatcher: Dispatcher, tool: Server
) -> None:
    body = b'{"error": {"reason": "tool_failed", "message": "no such city"}}'
    for behaviour in (replying(body), answering(200, body, content_type="application/json")):
        tool.behaviour = behaviour
        failure = error(await dispatcher.send(a_call(tool.url)))
        assert failure == {"reason": "tool_failed", "message": "no such city"}


async def test_a_redirect_is_not_followed(dispatcher: Dispatcher, tool: Server) -> None:
    tool.behaviour = answering(307, location="/elsewhere")

    failure = error(await dispatcher.send(a_call(tool.url)))

    assert failure["reason"] == "undeliverable"
    assert "redirect" in failure["message"]
    assert len(tool.posts) == 1


@pytest.mark.parametrize(
    ("status", "headers", "idempotent"),
    [(429, {}, False), (503, {"retry-after": "0"}, False), (503, {}, True)],
    ids=["too-many", "come-again", "idempotent"],
)
async def test_a_tool_that_does_not_take_the_call_is_called_again_with_the_same_event(
    dispatcher: Dispatcher, tool: Server, status: int, headers: dict[str, str], idempotent: bool
) -> None:
    async def busy_twice(_: Posted) -> web.Response:
        if len(tool.posts) <= 2:
            return web.Response(status=status, headers=headers)
        return web.Response(body=b'"at last"', headers=REPLY)

    tool.behaviour = busy_twice
    assert await dispatcher.send(a_call(tool.url, idempotent=idempotent)) == CallOutcome("at last")
    assert [posted.headers["ce-id"] for posted in tool.posts] == ["run.0.0"] * 3


async def test_a_tool_that_stays_busy_until_time_is_over_was_not_called(
    dispatcher: Dispatcher, tool: Server
) -> None:
    async def ever_busier(_: Posted) -> web.Response:
        busy = web.json_response({"detail": "8 calls are running"}, status=429)
        busy.content_type = "application/problem+json"
        if len(tool.posts) > 2:
            busy.headers["retry-after"] = "60"  # when no one waits any more
        return busy

    tool.behaviour = ever_busier
    failure = error(await dispatcher.send(a_call(tool.url, wait=30)))

    assert len(tool.posts) == 3
    assert failure["reason"] == "undeliverable"
    assert "takes no calls now: 8 calls are running" in failure["message"]


async def test_a_tool_that_is_slower_than_its_time_is_a_time_out(dispatcher: Dispatcher) -> None:
    BENCH.reset()
    async with served(app(hurry)) as url:
        call = a_call(url, wait=0.2)
        failure = error(await dispatcher.send(replace(call, tool=replace(call.tool, type="test.hurry"))))
        BENCH.gate.set()
    assert failure == {"reason": "timeout", "message": "the tool gave no answer within 0.2 seconds"}


async def test_where_no_one_listens_the_tool_was_not_called_and_its_address_is_not_reported(
    dispatcher: Dispatcher, caplog: pytest.LogCaptureFixture
) -> None:
    port = closed_port()
    failure = error(await dispatcher.send(a_call(f"http://127.0.0.1:{port}", wait=0.5)))

    assert failure["reason"] == "undeliverable"
    assert "was not called" in failure["message"]
    assert str(port) not in failure["message"]
    assert str(port) in caplog.text


async def test_a_tool_without_an_address_is_undeliverable(dispatcher: Dispatcher) -> None:
    assert error(await dispatcher.send(a_call("")))["reason"] == "undeliverable"


@pytest.mark.parametrize(("idempotent", "posts"), [(False, 1), (True, 2)])
async def test_after_a_lost_connection_only_what_may_be_repeated_is(
    dispatcher: Dispatcher, idempotent: bool, posts: int
) -> None:
    heads: list[bytes] = []

    async def lose_the_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        if len(heads) > 1:
            fields = {**REPLY, "Content-Length": "6"}
            head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + b'"done"')
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(lose_the_first, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        found = await dispatcher.send(a_call(f"http://127.0.0.1:{port}", idempotent=idempotent))

    assert len(heads) == posts
    assert all(b"connection: close" in head.lower() for head in heads)
    if idempotent:
        assert found == CallOutcome("done")
    else:
        assert error(found)["reason"] == "outcome_unknown"
        assert "may have run" in error(found)["message"]
