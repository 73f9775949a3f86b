"""New connections: many at a process that is busy with others, and those that come as it stops."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import uvloop

from beckon_runtime.asgi import DrainingServer, server_config
from beckon_runtime.connections import ConnectionLimits
from beckon_runtime.http_messages import Answer, Request
from beckon_runtime.http_server import Server
from beckon_runtime.origins import OriginPolicy
from beckon_runtime.process import accept_connections, copies_of, listen
from tests.patience import PATIENCE
from tests.runtime.test_asgi import App

BURST = 200
FEW_TURNS = 50
"""A quarter of what one connection in a turn of the loop would take."""

Opened = Callable[[], int]


@asynccontextmanager
async def asgi_service(listener: socket.socket) -> AsyncIterator[Opened]:
    config = server_config(
        App(), OriginPolicy.at("127.0.0.1", local_pages=True), ConnectionLimits(), closing_seconds=1
    )
    config.load()
    server = DrainingServer(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup([listener])
    yield lambda: len(server.server_state.connections)
    await server.shutdown([listener])


class NoCalls:
    """Handles nothing: no request comes."""

    def handle(self, request: Request, answer: Callable[[Answer], None]) -> None:
        raise AssertionError("no request was sent")


@asynccontextmanager
async def shim_server(listener: socket.socket) -> AsyncIterator[Opened]:
    server = Server("test", NoCalls(), 1000)  # type: ignore[arg-type]  # it is never called
    await server.start(listener)
    yield lambda: len(server.connections)
    await server.stop(1)


@asynccontextmanager
async def tls_port(listener: socket.socket) -> AsyncIterator[Opened]:
    accepted: list[socket.socket] = []

    async def accept() -> None:
        while True:
            accepted.extend(one for one, _ in await accept_connections(listener))

    accepting = asyncio.create_task(accept())
    yield lambda: len(accepted)
    accepting.cancel()
    for one in (*accepted, listener):
        one.close()


Serve = Callable[[socket.socket], contextlib.AbstractAsyncContextManager[Opened]]


async def turns_for_a_burst(serve: Serve) -> int:
    """Return in how many turns of the loop all connections of a burst are accepted."""
    listener = listen("127.0.0.1", 0)
    clients = [socket.create_connection(listener.getsockname()) for _ in range(BURST)]
    turns = 0
    async with serve(listener) as opened:
        while opened() < BURST and turns < 10 * BURST:
            await asyncio.sleep(0)
            turns += 1
        for client in clients:
            client.close()
    return turns


@pytest.mark.parametrize("serve", [asgi_service, shim_server, tls_port])
def test_a_burst_of_connections_is_accepted_in_a_few_turns_of_the_loop(serve: Serve) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        turns = runner.run(turns_for_a_burst(serve))

    assert turns <= FEW_TURNS


async def received_after_stop(serve: Serve, turns: int) -> bytes:
    """Connect, stop serving that many turns of the loop later, and return what the connection receives."""
    listener = listen("127.0.0.1", 0)
    async with serve(listener):
        client = socket.create_connection(listener.getsockname())
        for _ in range(turns):
            await asyncio.sleep(0)
    with client:
        client.setblocking(False)
        return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(client, 1), PATIENCE)


@pytest.mark.parametrize("new_loop", [asyncio.SelectorEventLoop, uvloop.Loop])
@pytest.mark.parametrize("serve", [asgi_service, shim_server])
@pytest.mark.parametrize("turns", range(4))
def test_a_connection_that_comes_as_a_service_stops_is_closed(
    serve: Serve, new_loop: Callable[[], asyncio.AbstractEventLoop], turns: int
) -> None:
    with asyncio.Runner(loop_factory=new_loop) as runner, contextlib.suppress(ConnectionResetError):
        assert runner.run(received_after_stop(serve, turns)) == b""


@pytest.mark.parametrize("ports", [1, 5, 17])
def test_a_process_with_several_ports_opens_no_more_files_for_bursts(ports: int) -> None:
    opened = []
    for _ in range(ports):
        listener = listen("127.0.0.1", 0)
        opened += [listener, *copies_of(listener, ports)]
    for one in opened:
        one.close()

    assert ports <= len(opened) <= max(16, ports)
