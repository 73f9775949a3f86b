"""A shim on real ports inside the test's loop, and a Broker whose behaviour a test writes."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from beckon_contract.correlation import Keyring, SigningKey
from beckon_runtime.process import listen
from beckon_shim.cluster import Cluster
from beckon_shim.service import Service, WaitTimes
from beckon_shim.settings import Settings
from tests.patience import PATIENCE, until

KEY = "00112233445566778899aabbccddeeff"
CALL = {
    "ce-specversion": "1.0",
    "ce-id": "call-1",
    "ce-source": "/beckon/agents/default/main",
    "ce-type": "weather",
    "content-type": "application/json",
}
Behaviour = Callable[["Posted"], Awaitable[web.Response | None]]


@dataclass(slots=True)
class Posted:
    """One POST that a server of the test got."""

    path: str
    headers: CIMultiDict[str]
    body: bytes
    cut: Callable[[], None] = lambda: None
    """Loses the connection that it came on."""

    @property
    def token(self) -> str:
        return self.headers["ce-correlationid"]


@dataclass(slots=True)
class Server:
    """An HTTP server of a test: it records every POST, then does what the test wants."""

    url: str = ""
    posts: list[Posted] = field(default_factory=list)
    behaviour: Behaviour | None = None
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.Response:
        transport = request.transport
        assert transport is not None
        posted = Posted(request.path, CIMultiDict(request.headers), await request.read(), transport.abort)
        self.posts.append(posted)
        self.arrived.set()
        answer = await self.behaviour(posted) if self.behaviour is not None else None
        return answer if answer is not None else web.Response(status=202)


@contextlib.asynccontextmanager
async def serving(context: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[Server]:
    """Run a server on this port or a free one, over TLS where it has a context."""
    server = Server()
    app = web.Application(client_max_size=8_000_000)
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=context)
    await site.start()
    server.url = f"{'https' if context else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


@dataclass(slots=True)
class Shim:
    """A running shim and a client to talk to it."""

    service: Service
    client: aiohttp.ClientSession
    stop: asyncio.Event
    running: "asyncio.Task[None]"
    host: str = "127.0.0.1"

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.service.port}"

    @property
    def replies(self) -> str:
        return f"http://{self.host}:{self.service.reply_port}"

    async def call(
        self, path: str = "/default/main", data: bytes = b"{}", **headers: str
    ) -> tuple[int, CIMultiDict[str], bytes]:
        """POST a call; header names have underscores for dashes."""
        sent = {**CALL, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return await self.post(self.url + path, sent, data)

    async def post(
        self, url: str, headers: Mapping[str, str], data: bytes = b""
    ) -> tuple[int, CIMultiDict[str], bytes]:
        async with self.client.post(url, headers=headers, data=data) as answer:
            return answer.status, CIMultiDict(answer.headers), await answer.read()

    async def reply(self, token: str, data: bytes = b'{"ok":true}', **headers: str) -> int:
        """Deliver a reply to this replica, as a Broker would; return the status."""
        sent = {**reply_headers(token), **{name.replace("_", "-"): value for name, value in headers.items()}}
        status, _, body = await self.post(self.replies + "/replies", sent, data)
        assert body == b"" or status >= 400
        return status

    async def dead_letter(self, posted: Posted, **headers: str) -> int:
        """Deliver the dead letter of a call; return the status."""
        attributes = {name: value for name, value in posted.headers.items() if name.lower().startswith("ce-")}
        sent = {**attributes, **{name.replace("_", "-"): value for name, value in headers.items()}}
        sent["content-type"] = "application/json"
        status, _, body = await self.post(self.replies + "/dead-letters", sent, posted.body)
        assert body == b"" or status >= 400
        return status

    async def metric(self, line: str) -> float:
        """Return the value of one line of the metrics, 0 where it is not there yet."""
        async with self.client.get(self.url + "/metrics") as answer:
            text = await answer.text()
        values = [row.rpartition(" ")[2] for row in text.splitlines() if row.rpartition(" ")[0] == line]
        return float(values[0]) if values else 0.0


def reply_headers(token: str) -> dict[str, str]:
    return {
        "ce-specversion": "1.0",
        "ce-id": "reply-1",
        "ce-source": "/tools/weather",
        "ce-type": "weather.reply",
        "ce-replyid": token,
        "content-type": "application/json",
    }


@contextlib.asynccontextmanager
async def shim_in_front_of(
    broker: str = "http://127.0.0.1:9",
    *,
    cluster: Cluster | None = None,
    waits: WaitTimes | None = None,
    **settings: object,
) -> AsyncIterator[Shim]:
    """Run a shim whose Broker is at this URL, or whose Brokers are those of a cluster.

    It takes calls without a credential, unless `open_calls` is false.
    """
    values: dict[str, object] = {
        "broker_url": broker + "/{namespace}/{name}",
        "port": 0,
        "reply_port": 0,
        "keys": KEY,
        "open_calls": True,
        "drain_seconds": 0.0,
        **settings,
    }
    chosen = Settings.model_validate(values)
    keyring = Keyring([SigningKey.parse(key) for key in chosen.keys.split(",")])
    service = Service(
        chosen,
        keyring,
        (listen(chosen.host, chosen.port), listen(chosen.host, chosen.reply_port)),
        cluster,
        waits=waits,
    )
    stop = asyncio.Event()
    running = asyncio.create_task(service.run(stop))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, timeout=aiohttp.ClientTimeout(total=PATIENCE)
    ) as client:
        try:
            yield Shim(service, client, stop, running, chosen.host)
        finally:
            stop.set()
            await asyncio.wait_for(running, PATIENCE)


async def waiting_call(shim: Shim, broker: Server) -> "asyncio.Task[tuple[int, bytes]]":
    """Start a call and return when its event is at the Broker."""
    before = len(broker.posts)

    async def call() -> tuple[int, bytes]:
        status, _, body = await shim.call()
        return status, body

    task = asyncio.create_task(call())
    await until(lambda: len(broker.posts) > before)
    return task


async def timed_out_call(shim: Shim, broker: Server, prefer: str = "", ce_id: str = "call-1") -> Posted:
    """Return the event of a call whose time ended without a reply.

    On a busy machine a short time is over before the event is at the Broker, or even before a connection to
    it is open, which is a 502; then the next call has longer.
    """
    for seconds in (0.01, 0.1, 1, 10):
        status, _, body = await shim.call(prefer=f"{prefer}wait={seconds}", ce_id=ce_id)
        if broker.posts:
            assert status == 504, body
            return broker.posts[0]
    raise AssertionError("no event came to the Broker")
