"""Serving an ASGI application on loopback inside a test's loop, and stopping it without waiting.

`uvicorn.Server.serve` would handle signals while it runs. Where two of them overlap, the handlers of a
stopped server can stay behind. sse-starlette looks there, and then ends every stream of the process.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

import uvicorn


@asynccontextmanager
async def served(
    app: Callable[..., Awaitable[Any]],
    port: int = 0,
    *,
    lifespan: Literal["auto", "off"] = "auto",
    host: str = "127.0.0.1",
    tls: tuple[str, str] | None = None,
) -> AsyncIterator[str]:
    """Serve an application, its lifespan included unless it has none, and give its URL; 0 is any port.

    `tls` names the files of a certificate and its key.
    """
    # asyncio switches Nagle's algorithm off only where the protocol is named: 40 ms an answer.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if port:  # its connections of before may still be remembered
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    config = uvicorn.Config(
        app,
        lifespan=lifespan,
        log_config=None,
        access_log=False,
        http="httptools",
        server_header=False,
        timeout_keep_alive=60,  # a stalled client would send into a connection that is just closed
        ssl_certfile=None if tls is None else tls[0],
        ssl_keyfile=None if tls is None else tls[1],
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    try:
        scheme = "http" if tls is None else "https"
        yield f"{scheme}://{host}:{listener.getsockname()[1]}"
    finally:
        # uvicorn sleeps when it stops, which hundreds of tests would feel.
        for listening in server.servers:
            listening.close()
        for connection in list(server.server_state.connections):
            connection.shutdown()
        if server.server_state.tasks:
            _, late = await asyncio.wait(server.server_state.tasks, timeout=1)
            for task in late:
                task.cancel()
        await server.lifespan.shutdown()
        for _ in range(100):
            if server.server_state.connections:
                await asyncio.sleep(0)
