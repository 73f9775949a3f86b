"""ASGI services on uvicorn, driven byte by byte: what a client may send, and how slowly."""

import asyncio
import contextlib
import functools
import json
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

import pytest
import uvicorn

from beckon_runtime.asgi import server_config
from beckon_runtime.certificates import CertificateFolder
from beckon_runtime.connections import ConnectionLimits
from beckon_runtime.origins import OriginPolicy
from beckon_runtime.tls import TlsPort
from tests.certified import Certified
from tests.patience import PATIENCE, until

GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\n"
EVIL = b"POST /run HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 4\r\n\r\nbody"

Message = MutableMapping[str, Any]


class App:
    """Answers with the body of the request; in pieces on /stream, as fast as the test lets it."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.go_on = asyncio.Event()

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        self.paths.append(scope["path"])
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body, more = body + message.get("body", b""), message.get("more_body", False)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/stream":
            await send({"type": "http.response.body", "body": b"first", "more_body": True})
            await self.go_on.wait()
        if scope["path"] == "/flood":
            for _ in range(1000):
                await send({"type": "http.response.body", "body": bytes(65_536), "more_body": True})
        await send({"type": "http.response.body", "body": body or b"nothing"})


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> "Client":
        self.writer.write(data)
        await self.writer.drain()
        return self

    async def head(self) -> tuple[int, bytes]:
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), PATIENCE)
        return int(head[9:12]), head

    async def rest(self) -> bytes:
        """Return all that comes until the connection ends."""
        rest = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := await asyncio.wait_for(self.reader.read(65_536), PATIENCE):
                rest += piece
        return rest


class Served:
    def __init__(
        self, server: uvicorn.Server, port: int, app: App, trust: ssl.SSLContext | None = None
    ) -> None:
        self.app = app
        self._server = server
        self.port = port
        self._trust = trust
        self._clients: list[Client] = []

    @property
    def connections(self) -> int:
        return len(self._server.server_state.connections)

    async def connect(self) -> Client:
        opened = await asyncio.open_connection("127.0.0.1", self.port, ssl=self._trust)
        client = Client(*opened)
        self._clients.append(client)
        return client

    async def status(self, data: bytes = GET) -> int:
        return (await (await (await self.connect()).send(data)).head())[0]

    async def refuses(self) -> bool:
        """Return True for a 503, or at the TLS port for a connection closed before its handshake."""
        try:
            return await self.status() == 503
        except ConnectionResetError:
            return self._trust is not None

    def close(self) -> None:
        for client in self._clients:
            client.writer.transport.abort()


Serve = Callable[..., contextlib.AbstractAsyncContextManager[Served]]


@contextlib.asynccontextmanager
async def serve(
    address: str = "127.0.0.1", *, tls: Certified | None = None, **limits: float
) -> AsyncIterator[Served]:
    app = App()
    given = {"total": 100, "per_client": 100, **limits}
    settings = ConnectionLimits(
        int(given.pop("total")), int(given.pop("per_client")), **{name: given[name] for name in given}
    )
    config = server_config(app, OriginPolicy.at(address), settings, lifespan="off", closing_seconds=1)
    listener, secure = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0))
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    tasks = set()
    if tls is not None:
        secure.setblocking(False)
        certificate = CertificateFolder(tls.folder)
        tasks.add(asyncio.create_task(certificate.follow_changes(seconds=0.05)))
        tasks.add(asyncio.create_task(TlsPort(secure, certificate).serve(server, config)))
    port = (listener if tls is None else secure).getsockname()[1]
    running = Served(server, port, app, None if tls is None else tls.trust)
    try:
        yield running
    finally:
        app.go_on.set()
        running.close()
        for listening in server.servers:
            listening.close()
        for task in tasks:
            task.cancel()
        secure.close()
        await until(lambda: not server.server_state.connections and not server.server_state.tasks)


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    """A certificate for this machine."""
    return Certified.issue(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=["http", "https"])
def served(request: pytest.FixtureRequest, certified: Certified) -> Serve:
    """The limits hold at both ports of a server."""
    return functools.partial(serve, tls=certified if request.param == "https" else None)


async def test_a_page_by_dns_rebinding_reaches_no_application(served: Serve) -> None:
    async with served() as server:
        client = await (await server.connect()).send(EVIL)
        status, head = await client.head()
        body = json.loads(await client.reader.readexactly(int(head.split(b"content-length: ")[1].split()[0])))

    assert (status, body["status"]) == (421, 421)
    assert b"application/problem+json" in head
    assert "BECKON_ALLOWED_HOSTS" in body["detail"]
    assert server.app.paths == []


async def test_a_request_of_http_1_1_needs_a_host_at_any_address(served: Serve) -> None:
    async with served("0.0.0.0") as server:  # any name is allowed there
        statuses = [await server.status(f"GET / HTTP/{version}\r\n\r\n".encode()) for version in (1.0, 1.1)]

    assert statuses == [200, 400]


async def test_half_open_connections_leave_room_for_others(served: Serve) -> None:
    async with served(total=20, per_client=1000) as server:
        silent = [await server.connect() for _ in range(60)]
        slow = [await (await server.connect()).send(GET[:20]) for _ in range(60)]

        assert await server.status() == 200
        assert await silent[0].rest() == b""
        assert await slow[0].rest() == b""


async def test_connections_that_are_served_are_not_closed_for_others(served: Serve) -> None:
    stream = GET.replace(b"/ ", b"/stream ")
    async with served(total=5, per_client=1000) as server:
        held = [await (await server.connect()).send(stream) for _ in range(5)]
        for client in held:
            await client.reader.readuntil(b"first")

        assert await server.refuses()

        server.app.go_on.set()
        for client in held:
            assert b"nothing" in await client.reader.readuntil(b"0\r\n\r\n")
        assert await server.status() == 200  # in place of one that is idle now


async def test_one_client_cannot_take_the_places_of_all(served: Serve) -> None:
    async with served(total=100, per_client=3) as server:
        first = await (await server.connect()).send(GET)
        await first.reader.readuntil(b"0\r\n\r\n")
        for _ in range(3):
            assert await server.status() == 200

        assert await first.rest() == b""


@pytest.mark.parametrize("data", [GET[:1], GET[:30], POST, POST + b"bo"])
async def test_a_request_that_does_not_arrive_in_time_is_408(served: Serve, data: bytes) -> None:
    async with served(receive_seconds=0.5) as server:
        client = await (await server.connect()).send(data)

        assert (await client.head())[0] == 408
        assert b"took longer than 0.5 s" in await client.rest()


async def test_a_byte_now_and_then_is_too_slow(served: Serve) -> None:
    async with served(receive_seconds=0.4) as server:
        client = await server.connect()

        async def drip() -> None:
            for byte in GET[:-1]:
                await client.send(bytes([byte]))
                await asyncio.sleep(0.02)  # the pace of the attack

        dripping = asyncio.create_task(drip())
        assert (await client.head())[0] == 408
        dripping.cancel()
        await asyncio.gather(dripping, return_exceptions=True)


async def test_silent_and_idle_connections_are_closed(served: Serve) -> None:
    async with served(idle_seconds=0.5) as server:
        silent = await server.connect()
        idle = await (await server.connect()).send(GET)
        await idle.reader.readuntil(b"0\r\n\r\n")

        assert await silent.rest() == b""
        assert await idle.rest() == b""


async def test_a_long_answer_outlives_every_limit_on_requests(served: Serve) -> None:
    async with served(receive_seconds=0.3, idle_seconds=0.3) as server:
        client = await (await server.connect()).send(GET.replace(b"/ ", b"/stream "))
        await client.reader.readuntil(b"first")
        await asyncio.sleep(1)  # three times what a request may take
        server.app.go_on.set()

        assert b"nothing" in await client.reader.readuntil(b"0\r\n\r\n")


async def test_a_client_that_does_not_read_its_answer_is_dropped(served: Serve) -> None:
    async with served(idle_seconds=0.5) as server:
        client = await (await server.connect()).send(GET.replace(b"/ ", b"/flood "))

        await until(lambda: server.app.paths and not server.connections)
        assert len(await client.rest()) < 1000 * 65_536


async def test_headers_of_any_size_are_not_taken(served: Serve) -> None:
    async with served() as server:
        client = await (await server.connect()).send(GET[:-2] + b"a: " + b"x" * 70_000)

        assert (await client.head())[0] == 431


async def test_a_connection_serves_many_requests_ahead_of_their_answers(served: Serve) -> None:
    async with served(receive_seconds=0.4, idle_seconds=0.4) as server:
        client = await (await server.connect()).send((POST + b"body") * 20)
        for _ in range(20):
            assert b"body" in await client.reader.readuntil(b"0\r\n\r\n")

        assert await client.rest() == b""  # closed as idle at the end


def test_the_limit_is_below_what_the_process_may_open(caplog: pytest.LogCaptureFixture) -> None:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    limits = ConnectionLimits.within_files(share=0.5, total=10 * files)

    assert limits.total == files // 2
    assert limits.per_client == files // 4
    assert "raise the limit of files" in caplog.text
