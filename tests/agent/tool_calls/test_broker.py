"""A call on the wire: the answers of the shim and the results for the model, over real HTTP."""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from beckon_agent.core.context import set_request_id
from beckon_agent.core.model_types import ToolCall
from beckon_agent.core.run_types import Agent, Limits
from beckon_agent.tool_calls.caller import Dispatcher, ToolCaller
from beckon_agent.tool_calls.outcome import CallOutcome, OutgoingCall
from beckon_agent.tool_calls.validation import prepare_calls
from beckon_contract.resources.tools import Tool
from tests.patience import PATIENCE
from tests.shim.support import Posted, Server, serving
from tests.silence import silent_address

TOOL = Tool(
    "echo", "team", "echo", "my.echo", None, "Say.", {"type": "object"}, "spec.schemaData", broker="main"
)
TYPE = "https://beckon.dev/problems/"
DEAD_LETTER = f"{TYPE}undeliverable"
REPLY = {
    "ce-specversion": "1.0",
    "ce-id": "r",
    "ce-source": "/t",
    "ce-type": "my.echo.reply",
    "content-type": "application/json",
}


@pytest_asyncio.fixture
async def shim() -> AsyncIterator[Server]:
    """A server that answers as a test says where the agent expects the shim."""
    async with serving() as server:
        yield server


def a_call(wait: float = 5.0, **arguments: object) -> OutgoingCall:
    return OutgoingCall("run.0.0", TOOL, arguments, "/beckon/agents/default/beckon", wait)


def answering(status: int = 200, body: bytes = b"", **headers: str) -> Callable[[Posted], Any]:
    """Return a behaviour that always gives this answer; header names have underscores for dashes."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def behave(_: Posted) -> web.Response:
        return web.Response(status=status, body=body, headers=named)

    return behave


def replying(body: bytes, content_type: str | None = "application/json") -> Callable[[Posted], Any]:
    headers = {**REPLY, "content-type": content_type} if content_type else dict(REPLY)
    return answering(200, body, **headers)


def problem(status: int, **members: object) -> Callable[[Posted], Any]:
    return answering(status, json.dumps(members).encode(), content_type="application/problem+json")


async def outcome(
    session: aiohttp.ClientSession, shim: Server, behaviour: Callable[[Posted], Any]
) -> CallOutcome:
    shim.behaviour = behaviour
    return await Dispatcher(session, shim.url).send(a_call())


def error(found: CallOutcome) -> dict[str, Any]:
    assert found.failed
    assert isinstance(found.result, dict)
    failure: dict[str, Any] = found.result["error"]
    return failure


async def test_a_call_is_one_cloudevent_on_the_path_of_its_broker(
    session: aiohttp.ClientSession, shim: Server
) -> None:
    shim.behaviour = replying(b"1")
    set_request_id("request-1")
    await Dispatcher(session, shim.url + "/").send(a_call(wait=12.5, text="é", n=2**63))
    (posted,) = shim.posts

    assert posted.path == "/team/main"
    assert posted.headers["ce-type"] == "my.echo"
    assert posted.headers["ce-id"] == "run.0.0"
    assert posted.headers["ce-source"] == "/beckon/agents/default/beckon"
    assert posted.headers["content-type"] == "application/json"
    assert posted.headers["x-request-id"] == "request-1"
    assert posted.headers["ce-traceparent"].startswith("00-")
    assert 9 < float(posted.headers["prefer"].removeprefix("wait=")) <= 12.5
    assert json.loads(posted.body) == {"text": "é", "n": 2**63}


@pytest.mark.parametrize(
    ("body", "content_type", "result"),
    [
        (b'{"a": [1]}', "application/json", {"a": [1]}),
        (b'{"a": 1}', "application/vnd.x+json; charset=utf-8", {"a": 1}),
        (b"null", "application/json", None),
        (b"", "application/json", None),
        ("grüße".encode(), "text/plain; charset=utf-8", "grüße"),
        (b"\xff\xfe", "text/plain", "\ufffd\ufffd"),
        (b"\x00\x01", "image/png", {"media_type": "image/png", "data_base64": "AAE="}),
    ],
)
async def test_every_kind_of_reply_becomes_a_result(
    session: aiohttp.ClientSession, shim: Server, body: bytes, content_type: str, result: object
) -> None:
    assert await outcome(session, shim, replying(body, content_type)) == CallOutcome(result)


@pytest.mark.parametrize("body", [b"{oops", b"[" * 2000 + b"]" * 2000, b"[" * 300 + b"]" * 300])
async def test_a_reply_that_cannot_be_read_is_a_failure_of_the_tool(
    session: aiohttp.ClientSession, shim: Server, body: bytes
) -> None:
    failure = error(await outcome(session, shim, replying(body)))

    assert failure["reason"] == "tool_failed"
    assert "not readable" in failure["message"]


async def test_an_answer_that_is_no_event_is_a_failure(session: aiohttp.ClientSession, shim: Server) -> None:
    failure = error(await outcome(session, shim, answering(200, b"<html>", content_type="text/html")))

    assert failure["reason"] == "tool_failed"


async def test_an_error_that_a_tool_replies_is_a_failure_in_its_own_words(
    session: aiohttp.ClientSession, shim: Server
) -> None:
    body = b'{"error": {"reason": "tool_failed", "message": "no such city", "city": "Atlantis"}}'

    failure = error(await outcome(session, shim, replying(body)))

    assert failure == {"reason": "tool_failed", "message": "no such city", "city": "Atlantis"}


@pytest.mark.parametrize("body", [b'{"error": "none"}', b'{"error": {"code": 5}}', b'{"error": null}'])
async def test_data_that_happens_to_have_an_error_member_is_data(
    session: aiohttp.ClientSession, shim: Server, body: bytes
) -> None:
    assert await outcome(session, shim, replying(body)) == CallOutcome(json.loads(body))


@pytest.mark.parametrize(
    ("answer", "reason", "message"),
    [
        ((504, {"detail": "no reply came"}), "timeout", "no reply came"),
        ((502, {"detail": "d", "code": 400, "reason_text": "text: is"}), "invalid_arguments", "text: is"),
        ((502, {"detail": "d", "code": 422, "delivered": False}), "invalid_arguments", "d"),
        ((502, {"detail": "d", "code": 500, "delivered": True}), "tool_failed", "d"),
        ((502, {"detail": "d", "code": 400, "delivered": True}), "invalid_arguments", "d"),
        ((502, {"detail": "d", "code": 403, "delivered": True}), "denied", "d"),
        ((502, {"detail": "refused", "delivered": False}), "undeliverable", "refused"),
        ((502, {}), "undeliverable", "answered 502"),
        ((503, {"detail": "busy", "delivered": True}), "tool_failed", "busy"),
        ((504, {"type": f"{TYPE}outcome-unknown", "delivered": True}), "outcome_unknown", "may have run"),
        ((502, {"type": f"{TYPE}outcome-unknown", "delivered": True}), "outcome_unknown", "may have run"),
        ((502, {"type": DEAD_LETTER, "delivered": True}), "outcome_unknown", "may have run"),
        ((502, {"type": DEAD_LETTER, "code": 404, "delivered": True}), "outcome_unknown", "may have run"),
        ((502, {"type": DEAD_LETTER, "code": 404, "delivered": False}), "undeliverable", "answered 502"),
        ((502, {"type": f"{TYPE}reply-too-large", "delivered": True}), "tool_failed", "answered 502"),
        ((404, {"detail": "POST an event"}), "undeliverable", "POST an event"),
        ((413, {"detail": "too large"}), "undeliverable", "too large"),
        ((202, {}), "undeliverable", "answered 202"),
        ((307, {}), "undeliverable", "answered 307"),
        ((500, {"detail": ["odd"]}), "undeliverable", "odd"),
    ],
)
async def test_every_problem_becomes_a_reason(
    session: aiohttp.ClientSession,
    shim: Server,
    answer: tuple[int, dict[str, Any]],
    reason: str,
    message: str,
) -> None:
    status, members = answer
    failure = error(await outcome(session, shim, problem(status, **members)))

    assert failure["reason"] == reason
    assert message in failure["message"]
    assert len(shim.posts) == 1


async def test_a_problem_that_is_no_json_is_reported_by_its_status(
    session: aiohttp.ClientSession, shim: Server
) -> None:
    failure = error(await outcome(session, shim, answering(500, b"<h1>oops</h1>")))

    assert failure == {"reason": "undeliverable", "message": "the event platform answered 500"}


async def test_a_busy_shim_is_called_again_with_the_same_event_and_less_time(
    session: aiohttp.ClientSession, shim: Server
) -> None:
    async def busy_twice(_: Posted) -> web.Response:
        if len(shim.posts) <= 2:
            return web.Response(status=503, headers={"retry-after": "0"})
        return web.Response(body=b'"at last"', headers=REPLY)

    shim.behaviour = busy_twice
    found = await Dispatcher(session, shim.url).send(a_call(wait=5))

    assert found == CallOutcome("at last")
    assert {posted.headers["ce-id"] for posted in shim.posts} == {"run.0.0"}
    waits = [float(posted.headers["prefer"].removeprefix("wait=")) for posted in shim.posts]
    assert waits == sorted(waits, reverse=True)
    assert waits[2] <= waits[0] - 0.4


async def test_a_shim_that_stays_busy_until_time_is_over_is_reported_as_such(
    session: aiohttp.ClientSession, shim: Server
) -> None:
    shim.behaviour = answering(503, retry_after="0")
    found = await Dispatcher(session, shim.url).send(a_call(wait=2))

    assert error(found)["reason"] == "undeliverable"
    assert "busy" in error(found)["message"]
    assert 3 <= len(shim.posts) <= 11


async def test_the_model_is_answered_with_what_keeps_the_platform_from_taking_calls(
    session: aiohttp.ClientSession, shim: Server
) -> None:
    detail = "the Broker team/main takes no events now: its condition Ready is False"
    shim.behaviour = problem(503, detail=detail, delivered=False)
    found = await Dispatcher(session, shim.url).send(a_call(wait=0.5))

    assert error(found)["reason"] == "undeliverable"
    assert error(found)["message"].endswith(detail)


async def test_a_wait_longer_than_the_time_that_is_left_is_not_waited(
    session: aiohttp.ClientSession, shim: Server
) -> None:
    begun = time.monotonic()
    shim.behaviour = answering(503, retry_after="90")

    assert error(await Dispatcher(session, shim.url).send(a_call(wait=60)))["reason"] == "undeliverable"
    assert time.monotonic() - begun < PATIENCE


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def test_a_shim_that_is_not_there_is_undeliverable_and_not_named_to_the_model(
    session: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    port = closed_port()
    found = await Dispatcher(session, f"http://127.0.0.1:{port}").send(a_call(wait=0.5))

    assert error(found)["reason"] == "undeliverable"
    assert "was not called" in error(found)["message"]
    assert str(port) not in json.dumps(found.result)
    assert str(port) in caplog.text


async def test_an_address_that_never_answers_is_given_up_long_before_the_call_is(
    session: aiohttp.ClientSession,
) -> None:
    with silent_address() as url:
        begun = time.monotonic()
        found = await Dispatcher(session, url).send(a_call(wait=2))

    assert error(found)["reason"] == "undeliverable"
    assert time.monotonic() - begun < 5


async def test_a_shim_that_starts_late_still_gets_the_call(session: aiohttp.ClientSession) -> None:
    port = closed_port()

    async def reply(_: web.Request) -> web.Response:
        return web.Response(body=b'"hello"', headers=REPLY)

    app = web.Application()
    app.router.add_post("/{path:.*}", reply)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    sending = asyncio.create_task(Dispatcher(session, f"http://127.0.0.1:{port}").send(a_call()))
    await asyncio.sleep(0.05)
    await web.TCPSite(runner, "127.0.0.1", port).start()

    assert await sending == CallOutcome("hello")
    await runner.cleanup()


async def test_a_connection_lost_in_the_middle_of_a_reply_does_not_claim_that_nothing_happened(
    session: aiohttp.ClientSession,
) -> None:
    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(half, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        found = await Dispatcher(session, f"http://127.0.0.1:{port}").send(a_call())

    assert error(found)["reason"] == "outcome_unknown"
    assert "may have run" in error(found)["message"]


@pytest.mark.parametrize("hint", ["idempotent", "read_only", ""])
async def test_a_connection_lost_before_any_answer_is_tried_again_only_where_the_tool_is_idempotent(
    session: aiohttp.ClientSession, hint: str
) -> None:
    heads: list[bytes] = []
    body = b'"done"'

    async def lose_the_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        if len(heads) > 1:
            fields = {**REPLY, "Content-Length": str(len(body))}
            head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
            writer.write(f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + body)
            await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(lose_the_first, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        tool = replace(TOOL, idempotent=hint == "idempotent", read_only=hint == "read_only")
        call = replace(a_call(), tool=tool)
        found = await Dispatcher(session, f"http://127.0.0.1:{port}").send(call)

    if not hint:
        assert error(found)["reason"] == "outcome_unknown"
        assert found.lost
        assert len(heads) == 1
        return
    assert found == CallOutcome("done")
    assert b"beckon-idempotent: true" in heads[0].lower()
    of_the_event = [sorted(line for line in head.split(b"\r\n") if line.startswith(b"ce-")) for head in heads]
    assert of_the_event[0] == of_the_event[1]


async def test_a_call_that_was_lost_once_is_not_said_to_have_had_no_effect(
    session: aiohttp.ClientSession,
) -> None:
    async def lose(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        server.close()
        await writer.wait_closed()

    server = await asyncio.start_server(lose, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    found = await Dispatcher(session, f"http://127.0.0.1:{port}").send(a_call(wait=1))

    assert error(found)["reason"] == "outcome_unknown"
    assert "may have run" in error(found)["message"]


async def test_a_reply_over_the_limit_is_a_failure_of_the_tool(
    session: aiohttp.ClientSession, shim: Server
) -> None:
    shim.behaviour = replying(b'"' + b"x" * 5000 + b'"')
    found = await Dispatcher(session, shim.url, max_reply_bytes=4000).send(a_call())

    assert error(found) == {"reason": "tool_failed", "message": "the tool's reply is larger than 4000 bytes"}


async def test_the_source_that_an_eventtype_names_wins(session: aiohttp.ClientSession, shim: Server) -> None:
    shim.behaviour = replying(b"1")
    tool = Tool("t", "ns", "t", "t", "/orders", "T.", {"type": "object"}, "spec.schemaData")
    await Dispatcher(session, shim.url).send(OutgoingCall("i", tool, {}, "/beckon", 5))

    assert shim.posts[0].headers["ce-source"] == "/orders"


async def test_a_mistake_of_ours_in_one_call_is_an_error_for_the_model(
    session: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Tool("t", "ns", "t", "no\x00type", None, "T.", {"type": "object"}, "spec.schemaData")
    (call,) = prepare_calls([ToolCall("a", "t", "{}")], {"t": broken})
    caller = ToolCaller(Dispatcher(session, "http://127.0.0.1:9"))

    finished = await caller.make_call(call, event_id="e.1", agent=Agent("a", "n", "", Limits()), remaining=5)

    assert finished.failed
    assert "e.1" in caplog.text
    assert isinstance(finished.result, dict)
    assert finished.result["error"]["reason"] == "tool_failed"
