"""A way to a server on loopback that can be cut: every connection, in the middle of what it carries."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Proxy:
    """Passes bytes on; `url` is where it listens. It runs in a thread of its own."""

    def __init__(self, target: int, loop: asyncio.AbstractEventLoop) -> None:
        self.url = ""
        self._target = target
        self._loop = loop
        self._open: set[asyncio.StreamWriter] = set()
        self._whole = True

    @classmethod
    @contextmanager
    def to(cls, port: int) -> Iterator["Proxy"]:
        """Serve until the context ends."""
        loop = asyncio.new_event_loop()
        proxy = cls(port, loop)
        ready, over = threading.Event(), asyncio.Event()

        async def serve() -> None:
            server = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
            proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            ready.set()
            await over.wait()
            server.close()
            proxy._cut()
            await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)

        thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
        thread.start()
        try:
            assert ready.wait(10)
            yield proxy
        finally:
            loop.call_soon_threadsafe(over.set)
            thread.join(10)
            loop.close()

    def cut(self) -> None:
        """Break every connection, and take no new ones until `mend`."""
        self._whole = False
        self._loop.call_soon_threadsafe(self._cut)

    def mend(self) -> None:
        """Take connections again."""
        self._whole = True

    def _cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._whole:
            writer.transport.abort()
            return
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
        self._open |= {writer, to_server}
        await asyncio.gather(_pass(reader, to_server), _pass(from_server, writer))
        self._open -= {writer, to_server}


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
