"""Serving the agent by uvicorn; it stops after the runs in progress have ended."""

import asyncio
import contextlib
import ctypes
import gc
import logging
import socket
import sys
from collections.abc import AsyncIterator
from types import FrameType

import uvicorn

from beckon_agent.service import Service


def settle_memory() -> None:
    """Free memory left by the start, and freeze the remaining objects.

    Later garbage collections skip the frozen objects. Imports leave holes of some five megabytes; glibc frees
    them only on request.
    """
    gc.collect()
    gc.freeze()
    # What a run makes goes with it: a look for cycles after every 700 objects takes a twentieth of its time.
    gc.set_threshold(10_000, 20, 50)
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)


logger = logging.getLogger(__name__)


@contextlib.asynccontextmanager
async def served_beside(config: uvicorn.Config, listener: socket.socket | None) -> AsyncIterator[None]:
    """Serve a small application on its own port during the block.

    It has neither signals nor a drain of its own. Without a listener nothing is served.
    """
    if listener is None:
        yield
        return
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        yield
    finally:
        await server.shutdown(sockets=[listener])


class Server(uvicorn.Server):
    """Drains on SIGTERM or SIGINT, reports it at /readyz, then stops.

    It stops when all runs have ended. Runs longer than `drain_seconds` are cut off. A second signal stops at
    once.
    """

    def __init__(self, config: uvicorn.Config, service: Service, drain_seconds: float) -> None:
        super().__init__(config)
        self._service = service
        self._drain_seconds = drain_seconds
        self._loop = asyncio.get_running_loop()
        self._draining: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve; all permanent objects are loaded by then."""
        await super().startup(sockets)
        settle_memory()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain; uvicorn calls this from its signal handlers."""
        del sig, frame
        self._loop.call_soon_threadsafe(self._begin_serving)

    def _begin_serving(self) -> None:
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain_service())
        else:
            self.should_exit = True

    async def _drain_service(self) -> None:
        logger.info("draining: %d runs are under way", self._service.running)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._drain_seconds):
                await self._service.drain_runs()
        self.should_exit = True
