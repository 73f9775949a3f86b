"""The peer: a bare ASGI application that answers a POST with its body, served like the shim.

`python -m bench.shim.echo` prints its port and ends when its input does. With the argument `event` its
answers are CloudEvents that name no call, as those of a service that was never written for calls.
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
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]
_EVENT = [
    (b"ce-specversion", b"1.0"),
    (b"ce-id", b"r"),
    (b"ce-source", b"/bench/tool"),
    (b"ce-type", b"bench.reply"),
]
_MARKS = _EVENT if "event" in sys.argv[1:] else []


async def echo(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """Answer 200 with the body that came."""
    body = await read_body(receive)
    length = (b"content-length", b"%d" % len(body))
    headers = [*_MARKS, (b"content-type", b"application/json"), length]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def read_body(receive: Callable[[], Awaitable[Message]]) -> bytes:
    """Return the body of a request."""
    message = await receive()
    body: bytes = message["body"]
    while message["more_body"]:
        message = await receive()
        body += message["body"]
    return body


async def serve(application: Application) -> None:
    """Serve an application on a free port, which is printed, until the input ends."""
    bound = socket.create_server(("127.0.0.1", 0), backlog=4096)
    config = uvicorn.Config(
        application,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=120,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    print(bound.getsockname()[1], flush=True)
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1000)
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(echo))
