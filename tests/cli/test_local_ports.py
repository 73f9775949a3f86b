"""Whether a server answers, as the local platform asks it."""

import asyncio

import pytest

from beckon_cli.local.ports import answers


async def answered(reply: bytes) -> bool:
    """Ask a server that sends these bytes after the request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        return await answers(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")


@pytest.mark.parametrize(
    ("reply", "good"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.1 404 Not Found\r\n\r\n", True),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", False),
        (b"SSH-2.0\r\n", False),
        (b"x" * 100_000, False),
        (b"", False),
    ],
)
async def test_a_server_answers_unless_it_fails_or_speaks_something_else(reply: bytes, good: bool) -> None:
    assert await answered(reply) is good


async def test_a_server_that_is_slow_to_begin_is_waited_for() -> None:
    begun = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        begun.set()
        await asyncio.sleep(0.2)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        assert await answers(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert begun.is_set()


async def test_a_port_on_which_nothing_listens_is_no_answer(unused_tcp_port: int) -> None:
    assert not await answers(f"http://127.0.0.1:{unused_tcp_port}")
