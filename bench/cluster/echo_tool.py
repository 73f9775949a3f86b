"""The tool that the benchmarks call: a bare ASGI application that answers an event with an event.

It runs in a pod from a ConfigMap, so it imports nothing of this project. The event's type
says how it behaves: `bench.echo` replies with the same data, `bench.slow` does so after
half a second, `bench.silent` never replies, `bench.refused` answers 400, and `bench.plain`
answers with JSON that is no event.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

Message = MutableMapping[str, Any]
Headers = list[tuple[bytes, bytes]]

_JSON = (b"content-type", b"application/json")
# What a replier copies: the value of the one attribute into the other.
_MARKS = {b"ce-correlationid": b"ce-replyid", b"ce-rrcorrelationid": b"ce-rrreplyid"}


async def tool(
    scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
) -> None:
    """Answer one delivery of the Broker."""
    message = await receive()
    body: bytes = message["body"]
    while message["more_body"]:
        message = await receive()
        body += message["body"]
    attributes = dict(scope["headers"])
    status, headers, answer = await _answer(attributes.get(b"ce-type", b""), attributes, body)
    headers.append((b"content-length", b"%d" % len(answer)))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


async def _answer(kind: bytes, attributes: dict[bytes, bytes], body: bytes) -> tuple[int, Headers, bytes]:
    match kind:
        case b"bench.silent":
            return 202, [], b""
        case b"bench.refused":
            return 400, [_JSON], b'{"detail":"the city is unknown"}'
        case b"bench.plain":
            return 200, [_JSON], b'{"temperature":21}'
        case b"bench.slow":
            await asyncio.sleep(0.5)
    return 200, _reply(attributes), body


def _reply(attributes: dict[bytes, bytes]) -> Headers:
    marks = [(back, attributes[out]) for out, back in _MARKS.items() if out in attributes]
    return [
        (b"ce-specversion", b"1.0"),
        (b"ce-id", b"reply-" + attributes.get(b"ce-id", b"")),
        (b"ce-source", b"/bench/tool"),
        (b"ce-type", b"bench.reply"),
        *marks,
        _JSON,
    ]


if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1000)
    uvicorn.run(
        tool,
        host="0.0.0.0",  # noqa: S104 - a pod: its Service must reach it
        port=8080,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=120,
    )
