"""A broker of the libraries alone: uvicorn, nats-py and aiohttp, and nothing that a broker is for.

`python -m bench.broker.bare NATS TOOL INBOX` prints its port and ends when its input does. It stores each
POST in JetStream, posts it to the tool, and posts the tool's reply to the inbox of the shim. It has one
Trigger without a filter. It checks no event, and has no limits, retries, dead letters, leases, metrics or
answers to errors. So its CPU is what these libraries cost: the rest of a broker's is its own work.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping
from uuid import uuid4

import aiohttp
import nats
import orjson
import uvloop
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StreamConfig

from bench.shim.echo import Message, read_body, serve

_STREAM = "bare"
_BATCH = 256
_PULL = orjson.dumps({"batch": _BATCH, "expires": 60_000_000_000})  # nanoseconds
_NEXT = f"$JS.API.CONSUMER.MSG.NEXT.{_STREAM}.{_STREAM}"


class BareBroker:
    """Ingress and dispatcher in one process."""

    def __init__(self, client: Client, session: aiohttp.ClientSession, tool: str, inbox: str) -> None:
        self._client = client
        self._stream = client.jetstream()
        self._session = session
        self._tool = tool
        self._inbox = inbox
        self._pulled = client.new_inbox()
        self._left = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Make the stream with its consumer, and pull."""
        stream = StreamConfig(name=_STREAM, subjects=[f"{_STREAM}.>"], retention=RetentionPolicy.WORK_QUEUE)
        await self._stream.add_stream(stream)
        consumer = ConsumerConfig(durable_name=_STREAM, ack_policy=AckPolicy.EXPLICIT, max_ack_pending=-1)
        await self._stream.add_consumer(_STREAM, consumer)
        await self._client.subscribe(self._pulled, cb=self._take)
        await self._pull()

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Answer 202 once the event is stored."""
        body = await read_body(receive)
        headers = {
            name.decode(): value.decode()
            for name, value in scope["headers"]
            if name.startswith(b"ce-") or name == b"content-type"
        }
        stored = orjson.dumps((headers, body.decode()))
        await self._stream.publish(f"{_STREAM}.event", stored, headers={"Nats-Msg-Id": uuid4().hex})
        await send({"type": "http.response.start", "status": 202, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async def _pull(self) -> None:
        self._left = _BATCH
        await self._client.publish(_NEXT, _PULL, reply=self._pulled)

    async def _take(self, message: Msg) -> None:
        if message.subject == self._pulled:  # the request has expired
            await self._pull()
            return
        self._left -= 1
        if not self._left:
            await self._pull()
        task = asyncio.create_task(self._deliver(message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _deliver(self, message: Msg) -> None:
        headers, body = orjson.loads(message.data)
        reply, data = await self._post(self._tool, headers, body.encode())
        found = {name: value for name, value in reply.items() if name.lower().startswith("ce-")}
        await self._post(self._inbox, {**found, "ce-replyid": headers["ce-correlationid"]}, data)
        await message.ack()

    async def _post(
        self, url: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[Mapping[str, str], bytes]:
        async with self._session.post(url, data=body, headers=headers) as response:
            return response.headers, await response.read()


async def _run(server: str, tool: str, inbox: str) -> None:
    client = await nats.connect(server)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        broker = BareBroker(client, session, tool, inbox)
        await broker.open()
        await serve(broker)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_run(*sys.argv[1:]))
