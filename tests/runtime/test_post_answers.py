"""The client of Brokers and subscribers reads each answer that HTTP allows, and no more than its limit."""

import asyncio

import pytest

from beckon_runtime.post_client import PostClient
from tests.patience import PATIENCE
from tests.runtime.raw_server import ACCEPTED, post, raw_server, read_post


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
async def test_so_much_of_every_form_of_body_is_read(
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


@pytest.mark.parametrize("stray", [b"HTTP/1.1 500 Stray\r\ncontent-length: 0\r\n\r\n", b"HTTP", b"\0"])
async def test_a_connection_with_an_answer_that_was_not_requested_is_not_used_again(
    client: PostClient, stray: bytes
) -> None:
    connections = 0

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await read_post(reader)
        writer.write(ACCEPTED + stray)
        await reader.read()

    async with raw_server(session) as url:
        assert [(await post(client, url)).status for _ in range(3)] == [202, 202, 202]
        waiting = await asyncio.gather(*(post(client, url) for _ in range(100)))
    assert {ack.status for ack in waiting} == {202}
    assert connections == 103
