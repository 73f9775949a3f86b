"""The client of Brokers, against servers that behave badly on purpose."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from beckon_runtime.post_client import PostClient
from beckon_runtime.posts import Ack, Target
from tests.patience import PATIENCE, until
from tests.silence import silent_address

Session = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
ACCEPTED = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"


@contextlib.asynccontextmanager
async def raw_server(session: Session, port: int = 0) -> AsyncIterator[str]:
    """Serve connections by hand; what hangs is cut at the end."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(asyncio.CancelledError, ConnectionError, asyncio.IncompleteReadError):
            await session(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/in"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def read_post(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
    return head + await reader.readexactly(length)


@pytest.fixture
async def client() -> AsyncIterator[PostClient]:
    client = PostClient(5)
    yield client
    await client.close()


async def post(client: PostClient, url: str, body: bytes = b"{}") -> Ack:
    acknowledged: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
    client.post(Target(url), [(b"ce-id", b"1")], body, acknowledged.set_result)
    return await asyncio.wait_for(acknowledged, PATIENCE)


async def test_connections_are_reused(client: PostClient) -> None:
    connections = 0
    heads = []

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            heads.append(await read_post(reader))
            writer.write(ACCEPTED)

    async with raw_server(session) as url:
        for _ in range(5):
            assert (await post(client, url + "?a=b")).status == 202
    assert connections == 1
    assert heads[0].startswith(b"POST /in?a=b HTTP/1.1\r\nhost: 127.0.0.1:")
    assert heads[0].endswith(b"ce-id: 1\r\ncontent-length: 2\r\n\r\n{}")
    assert len(client) == 0


async def test_a_reset_kept_alive_connection_is_retried_once_on_a_fresh_one(client: PostClient) -> None:
    bodies = []

    async def one_each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bodies.append(await read_post(reader))
        writer.write(ACCEPTED)
        # The next post on this connection is swallowed and the connection closed.
        await reader.readuntil(b"\r\n\r\n")

    async with raw_server(one_each) as url:
        assert (await post(client, url, b"first")).status == 202
        assert (await post(client, url, b"second")).status == 202
    assert [body[-6:] for body in bodies] == [b"\nfirst", b"second"]


async def test_a_client_of_calls_does_not_repeat_what_was_on_a_lost_connection() -> None:
    bodies = []

    async def one_each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bodies.append(await read_post(reader))
        writer.write(ACCEPTED)
        bodies.append(await read_post(reader))

    client = PostClient(5, repeats=False)
    async with raw_server(one_each) as url:
        assert (await post(client, url, b"first")).status == 202
        ack = await post(client, url, b"second")
    await client.close()
    assert (ack.status, ack.sent) == (0, True)
    assert [body[-6:] for body in bodies] == [b"\nfirst", b"second"]


async def test_a_connection_that_its_server_has_closed_is_not_used() -> None:
    served = asyncio.Event()

    async def one_each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_post(reader)
        writer.write(ACCEPTED)
        await writer.drain()
        if not served.is_set():
            served.set()
            return
        await reader.read()

    client = PostClient(5, repeats=False)
    async with raw_server(one_each) as url:
        assert (await post(client, url)).status == 202
        await served.wait()
        assert (await post(client, url)).status == 202
    await client.close()


async def test_a_fresh_connection_that_is_lost_is_not_retried(client: PostClient) -> None:
    posts = 0

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal posts
        await read_post(reader)
        posts += 1

    async with raw_server(cut) as url:
        ack = await post(client, url)
    assert (ack.status, ack.sent, posts) == (0, True, 1)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (b"HTTP/1.1 202 A\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 202),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 200),
        (b"HTTP/1.1 503 Busy\r\nRetry-After: 9\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno", 503),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204),
        (b"SMTP ready\r\n", 0),
        (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", 0),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\n" + b"x" * 100_000, 200),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000, 0),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000, 0),
    ],
    ids=["chunked", "continue", "busy", "empty", "not-http", "upgrade", "long-body", "long-head", "endless"],
)
async def test_every_form_of_answer_is_understood_or_refused(
    client: PostClient, answer: bytes, status: int
) -> None:
    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_post(reader)
        writer.write(answer)
        await writer.drain()
        await reader.read()

    async with raw_server(session) as url:
        ack = await post(client, url)
        assert ack.status == status
        assert ack.retry_after == ("9" if status == 503 else "")


LONGEST = 10


@pytest.mark.parametrize(
    ("answer", "body", "complete"),
    [
        (b"Content-Length: 3\r\n\r\nabc", b"abc", True),
        (b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n0\r\nx-y: z\r\n\r\n", b"abc", True),
        (b"\r\nabc", b"abc", True),
        (b"connection: close\r\n\r\n", b"", True),
        (b"content-length: 3\n\nabc", b"abc", True),
        (b"transfer-encoding: chunked\n\n3 \r\nabc\r\n0\r\n\r\n", b"abc", True),
        (b"content-length: 10\r\n\r\n0123456789", b"0123456789", True),
        (b"content-length: 11\r\n\r\n01234567890", b"0123456789", False),
        (b"\r\n" + b"0123456789" * 9, b"0123456789", False),
        (b"transfer-encoding: chunked\r\n\r\n" + b"4\r\nabcd\r\n" * 9, b"abcdabcdab", False),
    ],
    ids=[
        "length",
        "chunks",
        "to-the-end",
        "nothing",
        "bare-lf",
        "chunks-space",
        "limit",
        "above",
        "endless",
        "endless-chunks",
    ],
)
@pytest.mark.parametrize("at_once", [True, False], ids=["at-once", "byte-by-byte"])
async def test_of_every_form_of_body_so_much_is_kept(
    answer: bytes, body: bytes, complete: bool, at_once: bool
) -> None:
    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_post(reader)
        message = b"HTTP/1.1 200 OK\r\nce-id: 1\r\nX-Empty:\r\n" + answer
        for part in [message] if at_once else [bytes([byte]) for byte in message]:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)

    client = PostClient(PATIENCE, longest_body=LONGEST)
    async with raw_server(session) as url:
        ack = await post(client, url)
    await client.close()
    assert (ack.status, ack.body, ack.complete) == (200, body, complete)
    assert ack.headers[:2] == ((b"ce-id", b"1"), (b"X-Empty", b""))
    assert (ack.header(b"ce-id"), ack.header(b"x-empty"), ack.header(b"x-y")) == ("1", "", "")


@pytest.mark.parametrize(
    "answer",
    [b"content-length: 4\r\n\r\nabc", b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", b"ce-id: 1"],
    ids=["length", "chunks", "head"],
)
async def test_an_answer_that_breaks_off_is_none(client: PostClient, answer: bytes) -> None:
    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_post(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n" + answer)

    async with raw_server(session) as url:
        ack = await post(client, url)
    assert (ack.status, ack.sent) == (0, True)
    assert ack.error == "the connection broke before the answer was complete"


async def test_one_answer_on_a_connection_leaves_nothing_to_the_next(client: PostClient) -> None:
    answers = [b"HTTP/1.1 200 OK\r\nretry-after: 3\r\ncontent-length: 3\r\n\r\nabc", ACCEPTED]

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await read_post(reader)
            writer.write(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + answer)
        await reader.read()

    async with raw_server(session) as url:
        first, second = await post(client, url), await post(client, url)
    assert (first.body, first.retry_after) == (b"abc", "3")
    assert (second.status, second.body, second.headers) == (202, b"", ((b"content-length", b"0"),))


@pytest.mark.parametrize("first", [b"204 No Content\r\n\r\n", b"200 OK\r\ncontent-length: 1\r\n\r\n1"])
async def test_an_answer_is_not_that_of_the_next_post_too(first: bytes) -> None:
    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_post(reader)
        writer.write(b"HTTP/1.1 " + first)
        await read_post(reader)

    client = PostClient(PATIENCE, repeats=False)
    async with raw_server(session) as url:
        assert (await post(client, url)).status in (200, 204)
        ack = await post(client, url)
    await client.close()
    assert (ack.status, ack.sent) == (0, True)


async def test_a_connection_with_an_answer_that_was_not_requested_is_not_used_again(
    client: PostClient,
) -> None:
    connections = 0

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await read_post(reader)
        writer.write(ACCEPTED + b"HTTP/1.1 500 Stray\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    async with raw_server(session) as url:
        assert [(await post(client, url)).status for _ in range(3)] == [202, 202, 202]
    assert connections == 3


async def test_an_address_may_have_a_user_and_any_characters(client: PostClient) -> None:
    heads = []

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await read_post(reader))
        writer.write(ACCEPTED)
        await reader.read()

    async with raw_server(session) as url:
        origin = url.removesuffix("/in").removeprefix("http://")
        assert (await post(client, f"http://us%40er:pass@{origin}/grün e%20f?a=[ü]&b#c")).status == 202
    assert heads[0].startswith(b"POST /gr%C3%BCn%20e%20f?a=[%C3%BC]&b HTTP/1.1\r\nhost: 127.0.0.1:")
    assert b"\r\nauthorization: Basic dXNAZXI6cGFzcw==\r\n" in heads[0]


async def test_a_post_that_is_not_waited_for_any_more_ends_its_connection() -> None:
    ended = asyncio.Event()
    bodies = []

    async def session(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        bodies.append((await read_post(reader))[-1:])
        await reader.read()
        ended.set()

    client = PostClient(600)
    async with raw_server(session) as url:
        waiting = asyncio.create_task(client.deliver(Target(url), [], b"1"))
        await until(lambda: bodies == [b"1"])
        waiting.cancel()
        await asyncio.wait_for(ended.wait(), PATIENCE)
        withdrawn = asyncio.create_task(client.deliver(Target(url), [], b"2"))
        await asyncio.sleep(0)
        withdrawn.cancel()
        third = asyncio.create_task(client.deliver(Target(url), [], b"3"))
        await until(lambda: len(bodies) == 2)
        third.cancel()
        await asyncio.wait([waiting, withdrawn, third])
    assert bodies == [b"1", b"3"]
    await until(lambda: len(client) == 0)
    await client.close()


async def test_a_burst_is_served_by_few_connections() -> None:
    client = PostClient(PATIENCE)
    connections = 0

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            await read_post(reader)
            writer.write(ACCEPTED)

    async with raw_server(session) as url:
        acks = await asyncio.gather(*(post(client, url) for _ in range(500)))
        await client.close()
    assert {ack.status for ack in acks} == {202}
    assert connections < 300


async def test_slow_acknowledgements_do_not_hold_up_other_posts(client: PostClient) -> None:
    held: list[asyncio.StreamWriter] = []

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_post(reader)
        held.append(writer)
        await reader.read()

    async with raw_server(session) as url:
        posts = [asyncio.create_task(post(client, url)) for _ in range(200)]
        await until(lambda: len(held) == 200)
        assert len(client) == 200
        for writer in held:
            writer.write(ACCEPTED)
        assert {(await task).status for task in posts} == {202}


async def test_a_post_that_is_never_acknowledged_ends() -> None:
    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    client = PostClient(0.1)
    async with raw_server(session) as url:
        ack = await post(client, url)
    assert (ack.status, ack.sent) == (0, True)
    assert "in time" in ack.error
    await client.close()


async def test_a_post_may_have_less_time_than_the_others() -> None:
    async def silence(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    client = PostClient(600)
    async with raw_server(silence) as url:
        ack = await asyncio.wait_for(client.deliver(Target(url), [], b"{}", seconds=0.1), PATIENCE)

    assert (ack.status, ack.sent, ack.error) == (0, True, "no answer within 0.1 s")
    await client.close()


async def test_an_address_where_nothing_answers_costs_the_connect_time_and_no_more() -> None:
    with silent_address() as url:
        client = PostClient(60, connect_seconds=0.2)
        ack = await post(client, url)
        address = url.removeprefix("http://").removesuffix("/")
        assert (ack.status, ack.sent, ack.error) == (0, False, f"cannot connect to {address}: timed out")
        await client.close()


async def test_where_connections_are_refused_no_post_was_sent(client: PostClient) -> None:
    acks = await asyncio.gather(*(post(client, "http://127.0.0.1:9/") for _ in range(100)))
    assert {(ack.status, ack.sent) for ack in acks} == {(0, False)}
    assert acks[0].error.startswith("cannot connect to 127.0.0.1:9: Connect")


async def test_closing_ends_posts_running() -> None:
    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    client = PostClient(5)
    async with raw_server(session) as url:
        waiting = asyncio.create_task(post(client, url))
        await until(lambda: len(client) == 1)
        await asyncio.sleep(0)
        await client.close()
        assert (await waiting).status == 0


async def test_memory_does_not_grow_with_the_urls_that_strangers_name() -> None:
    # Six thousand answers take a busy machine longer than the five seconds of the other tests.
    client = PostClient(PATIENCE)

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await read_post(reader)
            writer.write(ACCEPTED)

    async with raw_server(session) as url:
        for number in range(6000):
            client.post(Target(f"{url}/{number}"), [], b"", lambda _: None)
        assert (await post(client, url)).status == 202
        assert client.known <= 4096
    assert (await post(client, url)).status == 0
    await until(lambda: client.known == 0)
    await client.close()
