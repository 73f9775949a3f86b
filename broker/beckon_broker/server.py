"""Serving with uvicorn; a stop first finishes the accepted deliveries."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from types import FrameType

import uvicorn

logger = logging.getLogger(__name__)

_BACKLOG = 4096


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; raise `OSError` for an unusable address."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server(address[:2], family=family, backlog=_BACKLOG)


def base_url(listener: socket.socket, host: str) -> str:
    """Return the URL of the socket on this machine."""
    port = listener.getsockname()[1]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


class Server(uvicorn.Server):
    """A uvicorn server draining on SIGTERM or SIGINT before it stops.

    It still answers while it drains. A second signal stops at once.
    """

    def __init__(self, config: uvicorn.Config, drain: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._drain = drain
        self._draining: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until stopped."""
        self._loop = asyncio.get_running_loop()
        await super().serve(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start to drain; uvicorn calls this from its signal handlers."""
        del sig, frame
        if self._loop is None or self._draining is not None:
            self.should_exit = True
            return
        self._loop.call_soon_threadsafe(self._begin)

    def _begin(self) -> None:
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain_and_stop())

    async def _drain_and_stop(self) -> None:
        try:
            await self._drain()
        finally:
            self.should_exit = True
