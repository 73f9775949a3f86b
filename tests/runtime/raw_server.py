"""Servers that answer posts by hand, and badly on purpose."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from beckon_runtime.post_client import PostClient
from beckon_runtime.posts import Ack, Target
from tests.patience import PATIENCE

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


async def post(client: PostClient, url: str, body: bytes = b"{}") -> Ack:
    acknowledged: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
    client.post(Target(url), [(b"ce-id", b"1")], body, acknowledged.set_result)
    return await asyncio.wait_for(acknowledged, PATIENCE)
