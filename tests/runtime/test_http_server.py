"""The HTTP server, against clients that behave in every way."""

import asyncio
import contextlib
import gc
import json
import re
import time
from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime

import pytest

from beckon_runtime.connections import ConnectionLimits
from beckon_runtime.http_messages import Answer, HangUp, Piece, Request, Respond
from beckon_runtime.http_server import Server, ServerConnection
from beckon_runtime.process import listen
from tests.patience import PATIENCE, until

POST = b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nX-Name: v\r\ncontent-length: 2\r\n\r\n{}"


class Recorder:
    """A handler that keeps requests, and answers at once or when a test says so."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.waiting: list[Respond] = []
        self.hold = False
        self.hung_up = 0

    def handle(self, request: Request, respond: Respond) -> HangUp | None:
        self.requests.append(request)
        if request.path == "/broken":
            raise RuntimeError
        if not self.hold:
            respond(Answer(200, [(b"x-path", request.path.encode())], request.body, ""))
            return None
        self.waiting.append(respond)
        return self._hang_up

    def too_large(self, request: Request, limit: int) -> Answer:
        return Answer(413, [], str(limit).encode(), "")

    def _hang_up(self) -> None:
        self.hung_up += 1


class Client:
    """A connection that is driven byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    async def answer(self, *, head_only: bool = False) -> tuple[int, bytes, bytes]:
        head = await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), PATIENCE)
        length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
        body = b"" if head_only else await asyncio.wait_for(self._reader.readexactly(length), PATIENCE)
        return int(head[9:12]), head, body

    async def pieces(self) -> bytes:
        """Return the body of an answer that comes in chunks, with their frames."""
        head = await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), PATIENCE)
        assert b"transfer-encoding: chunked\r\n" in head
        return await asyncio.wait_for(self._reader.readuntil(b"0\r\n\r\n"), PATIENCE)

    async def rest(self) -> bytes:
        """Return all that comes until the connection ends."""
        return await asyncio.wait_for(self._reader.read(), PATIENCE)

    async def ended(self) -> bool:
        with contextlib.suppress(ConnectionResetError):
            return await asyncio.wait_for(self._reader.read(1), PATIENCE) == b""
        return True


@pytest.fixture
async def handler() -> Recorder:
    return Recorder()


@pytest.fixture
async def server(handler: Recorder) -> AsyncIterator[Server]:
    server = Server("test", handler, body_bytes=1000)
    yield server
    await server.stop(0.1)


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    async with connected(server) as client:
        yield client


@contextlib.asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Client]:
    bound = listen("127.0.0.1", 0)
    port = bound.getsockname()[1]
    await server.start(bound)
    client = Client(*await asyncio.open_connection("127.0.0.1", port))
    yield client
    client.writer.close()
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        await client.writer.wait_closed()
    await server.stop(0.1)


async def test_a_connection_serves_many_requests(client: Client, handler: Recorder) -> None:
    for _ in range(3):
        client.writer.write(POST)
        status, head, body = await client.answer()
        assert (status, body) == (200, b"{}")
        assert b"x-path: /a\r\n" in head
    assert handler.requests[0].headers == [(b"host", b"x"), (b"x-name", b"v"), (b"content-length", b"2")]


async def test_an_answer_has_its_date(client: Client) -> None:
    client.writer.write(POST)
    _, head, _ = await client.answer()
    (written,) = re.findall(rb"\r\ndate: ([^\r]+)\r\n", head)

    assert abs(parsedate_to_datetime(written.decode()).timestamp() - time.time()) < PATIENCE


async def test_a_request_may_come_in_single_bytes(client: Client) -> None:
    for byte in POST:
        client.writer.write(bytes([byte]))
        await client.writer.drain()
        await asyncio.sleep(0)
    assert (await client.answer())[2] == b"{}"


async def test_a_chunked_body_is_joined(client: Client) -> None:
    client.writer.write(
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    )
    assert (await client.answer())[2] == b"abcde"


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"/a/b%20c?d=%2F", "/a/b%20c", "d=%2F"),
        (b"http://x:80/a?d", "/a", "d"),
        (b"http://x", "/", ""),
        (b"/a?", "/a", ""),
    ],
)
async def test_the_target_of_a_request_may_be_absolute(
    client: Client, handler: Recorder, target: bytes, path: str, query: str
) -> None:
    client.writer.write(b"POST " + target + b" HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")
    await client.answer()

    assert (handler.requests[0].path, handler.requests[0].query) == (path, query)


async def test_what_follows_a_request_is_refused_after_its_answer(client: Client, handler: Recorder) -> None:
    handler.hold = True
    client.writer.write(POST + POST + b"no request\r\n\r\n")
    await until(lambda: handler.waiting)
    handler.waiting[0](Answer(200, [], b"answer"))
    await until(lambda: len(handler.waiting) == 2)
    handler.waiting[1](Answer(200, [], b"answer"))
    first, second, last = await client.answer(), await client.answer(), await client.answer()

    assert [first[0], second[0], last[0]] == [200, 200, 400]
    assert b"this is not HTTP/1.1" in last[2]
    assert await client.rest() == b""


async def test_requests_sent_ahead_are_answered_in_their_order(client: Client, handler: Recorder) -> None:
    handler.hold = True
    ahead = b"".join(POST.replace(b"/a", b"/%d" % number) for number in range(50))
    client.writer.write(ahead)
    for number in range(50):
        await until(lambda: len(handler.waiting) > 0)
        assert len(handler.waiting) == 1
        handler.waiting.pop()(Answer(200, [], b"%d" % number, ""))
        assert (await client.answer())[2] == b"%d" % number


async def test_a_client_that_hangs_up_is_noticed(client: Client, handler: Recorder) -> None:
    handler.hold = True
    client.writer.write(POST)
    await until(lambda: len(handler.waiting) == 1)
    client.writer.close()
    await until(lambda: handler.hung_up == 1)
    handler.waiting.pop()(Answer(200, [], b"too late", ""))


async def test_only_the_first_answer_is_sent(client: Client, handler: Recorder) -> None:
    handler.hold = True
    client.writer.write(POST)
    await until(lambda: len(handler.waiting) == 1)
    respond = handler.waiting.pop()
    respond(Answer(200, [], b"1", ""))
    respond(Answer(200, [], b"2", ""))
    handler.hold = False
    client.writer.write(POST)
    assert [(await client.answer())[2] for _ in range(2)] == [b"1", b"{}"]


async def test_an_expectation_is_met(client: Client) -> None:
    head, _, body = POST.partition(b"\r\n\r\n")
    client.writer.write(head + b"\r\nExpect: 100-continue\r\n\r\n")
    assert await client._reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.writer.write(body)
    assert (await client.answer())[0] == 200


@pytest.mark.parametrize("start", [b"POST / HTTP/1.0\r\n", b"POST / HTTP/1.1\r\nconnection: close\r\n"])
async def test_a_connection_is_closed_where_the_client_asks(client: Client, start: bytes) -> None:
    client.writer.write(start + b"host: x\r\ncontent-length: 0\r\n\r\n")
    _, head, _ = await client.answer()
    assert b"connection: close" in head
    assert await client.ended()


@pytest.mark.parametrize("cut", [20, 60, 110, 10_000])
async def test_an_offer_of_another_protocol_is_ignored(client: Client, handler: Recorder, cut: int) -> None:
    offer = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAAAAIAAAAB\r\n"
    sent = b"POST /a HTTP/1.1\r\nhost: x\r\n" + offer + b"content-length: 3\r\n\r\nabc" + POST

    client.writer.write(sent[:cut])
    await client.writer.drain()
    client.writer.write(sent[cut:])

    assert [(await client.answer())[0] for _ in range(2)] == [200, 200]
    assert handler.requests[0].body == b"abc"


async def test_head_gets_the_length_and_no_body(client: Client) -> None:
    client.writer.write(b"HEAD /x HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc" + POST)
    assert b"content-length: 3" in (await client.answer(head_only=True))[1]
    assert (await client.answer())[2] == b"{}"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
        (b"CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: x\r\na: " + b"x" * 400_000, 431),
        (b"GET /" + b"x" * 400_000, 431),
        (b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1001\r\n\r\n" + b"x" * 1001, 413),
        (b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1001, 413),
    ],
    ids=["nonsense", "smuggled", "lengths", "tunnel", "header", "url", "body", "chunks"],
)
async def test_what_is_wrong_or_too_large_is_refused_and_the_connection_closed(
    client: Client, handler: Recorder, sent: bytes, status: int
) -> None:
    client.writer.write(sent)
    assert (await client.answer())[0] == status
    assert await client.ended()
    assert handler.requests == []


async def test_a_defect_is_500_without_a_trace(
    client: Client, handler: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    client.writer.write(POST.replace(b"/a", b"/broken"))
    status, _, body = await client.answer()
    assert (status, json.loads(body)["title"]) == (500, "Internal error")
    assert b"RuntimeError" not in body
    assert "RuntimeError" in caplog.text


async def test_a_request_that_does_not_arrive_in_time_is_408(handler: Recorder) -> None:
    async with connected(Server("test", handler, 1000, ConnectionLimits(receive_seconds=0.1))) as client:
        client.writer.write(POST)
        assert (await client.answer())[0] == 200
        client.writer.write(POST[:30])
        assert (await client.answer())[0] == 408
        assert await client.ended()


async def test_an_idle_connection_is_closed_and_a_held_answer_is_not(handler: Recorder) -> None:
    async with connected(Server("test", handler, 1000, ConnectionLimits(idle_seconds=0.1))) as client:
        handler.hold = True
        client.writer.write(POST)
        await until(lambda: len(handler.waiting) == 1)
        await asyncio.sleep(0.3)  # longer than what is idle may last
        handler.waiting.pop()(Answer(200, [], b"late", ""))
        assert (await client.answer())[2] == b"late"
        assert await client.ended()


async def test_stopping_closes_idle_connections_and_lets_answers_out(
    client: Client, server: Server, handler: Recorder
) -> None:
    handler.hold = True
    client.writer.write(POST)
    await until(lambda: len(handler.waiting) == 1)
    stopping = asyncio.create_task(server.stop(5))
    await asyncio.sleep(0)
    handler.waiting.pop()(Answer(200, [], b"last", ""))
    _, head, body = await client.answer()
    assert body == b"last"
    assert b"connection: close" in head
    await stopping


async def test_a_closed_connection_leaves_nothing_to_the_collector(client: Client, server: Server) -> None:
    gc.collect()
    gc.disable()
    try:
        client.writer.write(POST)
        await client.answer()
        client.writer.close()
        await until(lambda: not server.connections)
        await asyncio.sleep(0)
        assert not [thing for thing in gc.get_objects() if isinstance(thing, ServerConnection)]
    finally:
        gc.enable()


def piece(body: bytes, *, last: bool = False) -> Piece:
    return Piece([(b"content-type", b"text/plain")], body, Answer(200, [], b"", "") if last else None)


async def test_an_answer_may_come_in_pieces_before_the_next_one(client: Client, handler: Recorder) -> None:
    handler.hold = True
    client.writer.write(POST * 2)
    await until(lambda: len(handler.waiting) == 1)
    respond = handler.waiting.pop()
    respond(piece(b"one"))
    respond(piece(b"two", last=True))
    respond(piece(b"too late"))
    await until(lambda: len(handler.waiting) == 1)
    handler.waiting.pop()(Answer(200, [], b"next", ""))

    assert await client.pieces() == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
    assert (await client.answer())[2] == b"next"


async def test_without_chunks_the_connection_ends_behind_the_pieces(
    client: Client, handler: Recorder
) -> None:
    handler.hold = True
    client.writer.write(
        POST.replace(b"HTTP/1.1", b"HTTP/1.0").replace(b"Host", b"connection: keep-alive\r\nHost")
    )
    await until(lambda: len(handler.waiting) == 1)
    respond = handler.waiting.pop()
    respond(piece(b"one"))
    respond(piece(b"two", last=True))

    head, body = (await client.rest()).split(b"\r\n\r\n")
    assert b"connection: close" in head
    assert b"chunked" not in head
    assert body == b"onetwo"


async def test_of_pieces_that_a_client_does_not_read_the_newest_is_held(
    client: Client, handler: Recorder, server: Server
) -> None:
    handler.hold = True
    client.writer.write(POST)
    await until(lambda: len(handler.waiting) == 1)
    respond = handler.waiting.pop()
    (connection,) = server.connections
    respond(piece(b"read"))
    connection.pause_writing()
    for number in range(1000):
        respond(piece(b"%d" % number))
    connection.resume_writing()
    respond(piece(b"end", last=True))

    assert await client.pieces() == b"4\r\nread\r\n3\r\n999\r\n3\r\nend\r\n0\r\n\r\n"
