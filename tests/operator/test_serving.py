"""The ports of operator and webhook over real sockets: hosts, pages, and more connections than may be."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from beckon_operator.serving import health_app, serve_app
from beckon_runtime.connections import ConnectionLimits
from beckon_runtime.origins import OriginPolicy
from beckon_runtime.process import CannotListen, listen
from tests.patience import PATIENCE
from tests.runtime.test_bursts import Opened, received_after_stop

LIMITS = ConnectionLimits(total=4, per_client=4, receive_seconds=0.2, idle_seconds=0.2)


async def healthz(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def slow(_: web.Request) -> web.Response:
    await asyncio.sleep(1)
    return web.Response(text="slow")


@contextlib.asynccontextmanager
async def serving(limits: ConnectionLimits = LIMITS, *, hosts: str = "") -> AsyncIterator[int]:
    """Serve on a free port."""
    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/slow", slow)
    listener = listen("127.0.0.1", 0)
    runner = await serve_app(app, listener, OriginPolicy.at("127.0.0.1", hosts), limits)
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def health_port(listener: socket.socket) -> AsyncIterator[Opened]:
    runner = await serve_app(web.Application(), listener, OriginPolicy.at("127.0.0.1"), LIMITS)
    yield lambda: 0
    await runner.cleanup()


@pytest.mark.parametrize("turns", range(4))
async def test_a_connection_that_comes_as_the_port_closes_is_closed(turns: int) -> None:
    with contextlib.suppress(ConnectionResetError):
        assert await received_after_stop(health_port, turns) == b""


async def send(port: int, text: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text.encode())
    await writer.drain()
    return reader, writer


def get(path: str, host: str = "localhost", more: str = "") -> str:
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n"


async def answer(port: int, text: str) -> str:
    """Return the first line of the answer and its body."""
    reader, writer = await send(port, text.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"))
    async with asyncio.timeout(PATIENCE):
        whole = await reader.read()
    writer.close()
    return whole.decode()


async def closed(reader: asyncio.StreamReader) -> bool:
    """Wait until the other side closes; return whether it did so without a word."""
    async with asyncio.timeout(PATIENCE):
        return await reader.read() == b""


@pytest.mark.parametrize(
    ("host", "more", "status"),
    [
        ("localhost", "", 200),
        ("127.0.0.1:1", "", 200),
        ("operator.test", "", 200),
        ("evil.example", "", 421),
        ("localhost", "Origin: http://evil.example\r\n", 403),
    ],
)
async def test_host_and_origin_are_checked(host: str, more: str, status: int) -> None:
    async with serving(hosts="operator.test") as port:
        found = await answer(port, get("/healthz", host, more))

    assert found.startswith(f"HTTP/1.1 {status} ")
    assert ("application/problem+json" in found) is (status != 200)


async def test_half_open_connections_do_not_keep_others_out() -> None:
    async with serving(ConnectionLimits(4, 4, 60, 60)) as port:
        held = [await send(port, "GET /healthz HT") for _ in range(12)]
        found = await answer(port, get("/healthz"))
        gone = [await closed(reader) for reader, _ in held[:8]]
        for _, writer in held:
            writer.close()

    assert found.startswith("HTTP/1.1 200 ")
    assert all(gone)


@pytest.mark.parametrize("begun", ["", "GET /healthz HTTP/1.1\r\nHost: loc"], ids=["silent", "slow"])
async def test_a_client_that_sends_no_whole_request_is_closed(begun: str) -> None:
    async with serving() as port:
        reader, writer = await send(port, begun)

        assert await closed(reader)
        writer.close()


async def test_a_client_that_sends_a_byte_now_and_then_is_closed() -> None:
    async with serving() as port:
        reader, writer = await send(port, "GET /healthz HTTP/1.1\r\nX-Slow: ")
        ended = asyncio.create_task(closed(reader))
        with contextlib.suppress(ConnectionError):
            while not ended.done():
                writer.write(b"e")
                await writer.drain()
                await asyncio.sleep(0.05)

        assert await ended
        writer.close()


async def test_a_connection_that_was_answered_is_closed_when_idle() -> None:
    async with serving() as port:
        reader, writer = await send(port, get("/healthz"))
        async with asyncio.timeout(PATIENCE):
            found = await reader.read()
        writer.close()

    assert found.endswith(b"ok")


async def test_requests_that_are_answered_are_neither_closed_nor_replaced() -> None:
    async with serving() as port:
        busy = [await send(port, get("/slow")) for _ in range(4)]
        await asyncio.sleep(0.2)  # until all four are being answered
        refused = await answer(port, get("/healthz"))
        found = [await reader.read(1024) for reader, _ in busy]
        for _, writer in busy:
            writer.close()

    assert refused.startswith("HTTP/1.1 503 ")
    assert all(one.endswith(b"slow") for one in found)


def test_a_port_that_is_taken_is_named_with_its_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        with pytest.raises(CannotListen, match=f"cannot listen on 127.0.0.1:{taken}: .*; set THE_PORT"):
            listen("127.0.0.1", taken, "set THE_PORT to another port")


async def test_a_service_that_is_not_ready_says_why_and_lives() -> None:
    app = health_app("beckon-test", lambda: b"answered_total 1\n", lambda: "nothing has been listed yet")
    runner = await serve_app(app, listen("127.0.0.1", 0), OriginPolicy.at("127.0.0.1", ""), LIMITS)
    try:
        port = runner.addresses[0][1]
        ready, alive, metrics = [
            await answer(port, get(path)) for path in ("/readyz", "/healthz", "/metrics")
        ]
        unknown = await answer(port, get("/x"))
    finally:
        await runner.cleanup()

    assert ready.startswith("HTTP/1.1 503 ")
    assert "nothing has been listed yet" in ready
    assert alive.startswith("HTTP/1.1 200 ")
    assert metrics.endswith("answered_total 1\n")
    assert "this port has no /x" in unknown
