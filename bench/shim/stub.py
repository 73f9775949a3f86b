"""A stand-in for a Broker and a tool: takes the event, answers 202, posts the reply back.

Events to `/hold/...` are answered 202 and held until a POST to `/release`.
`python -m bench.shim.stub REPLY_PORT` prints its port and ends when its input does.
"""

import asyncio
import re
import sys
from typing import cast

import uvloop

from bench.shim.wire import Pool, request, split_message

_ACCEPTED = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
_TOKEN = re.compile(rb"\r\nce-correlationid: ([^\r]+)")
_ID = re.compile(rb"\r\nce-id: ([^\r]+)")
_CONNECTIONS = 64


class Stub:
    """What the connections share: the pool for replies, and the held replies."""

    def __init__(self, reply_port: int) -> None:
        self.pool = Pool("127.0.0.1", reply_port, _CONNECTIONS)
        self.held: list[bytes] = []

    def take(self, head: bytes, body: bytes) -> None:
        """Make the reply of an event, and post or hold it."""
        if head.startswith(b"POST /release"):
            held, self.held = self.held, []
            for reply in held:
                self.pool.send(reply, _ignore)
            return
        token, identity = _TOKEN.search(head), _ID.search(head)
        if token is None or identity is None:
            return
        reply = request("/replies", _reply_headers(token[1].decode(), identity[1].decode()), body)
        if head.startswith(b"POST /hold/"):
            self.held.append(reply)
        else:
            self.pool.send(reply, _ignore)


class _Ingress(asyncio.Protocol):
    def __init__(self, stub: Stub) -> None:
        self._stub = stub
        self._buffer = b""
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (message := split_message(self._buffer)) is not None:
            head, body, total = message
            self._buffer = self._buffer[total:]
            cast(asyncio.Transport, self._transport).write(_ACCEPTED)
            self._stub.take(head, body)


def _reply_headers(token: str, identity: str) -> list[tuple[str, str]]:
    return [
        ("ce-specversion", "1.0"),
        ("ce-id", f"reply-{identity}"),
        ("ce-source", "/bench/tool"),
        ("ce-type", "bench.reply"),
        ("ce-replyid", token),
        ("content-type", "application/json"),
    ]


def _ignore(status: int, body: bytes) -> None:
    pass


async def _serve(reply_port: int) -> None:
    loop = asyncio.get_running_loop()
    stub = Stub(reply_port)
    server = await loop.create_server(lambda: _Ingress(stub), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(sys.argv[1])))
