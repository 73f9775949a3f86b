"""Serving a bare ASGI application on a free port, the same for each program of this benchmark.

It runs in the environment of the peers, too, so it imports uvicorn and uvloop and nothing else.
"""

import asyncio
import gc
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn
import uvloop

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]


def serve(app: App) -> None:
    """Print the port, serve, and end when the input does."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(app))


async def read_body(receive: Receive) -> bytes:
    """Return the whole body of a request."""
    message = await receive()
    body: bytes = message["body"]
    while message["more_body"]:
        message = await receive()
        body += message["body"]
    return body


async def answer(send: Send, body: bytes, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    """Answer 200 with JSON."""
    length = (b"content-length", b"%d" % len(body))
    head = [(b"content-type", b"application/json"), length, *(headers or [])]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def begin_events(send: Send) -> None:
    """Begin an answer of server-sent events."""
    head = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": head})


async def _serve(app: App) -> None:
    # asyncio switches Nagle's algorithm off only where the protocol is named.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.bind(("127.0.0.1", 0))
    bound.listen(4096)
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_keep_alive=120,
        timeout_graceful_shutdown=1,
        backlog=4096,
    )
    server = uvicorn.Server(config)
    print(bound.getsockname()[1], flush=True)
    gc.freeze()  # as Beckon's agent does
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.should_exit = True
    await serving
