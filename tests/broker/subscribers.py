"""Real HTTP servers that stand where a tool, a shim or a dead-letter sink would."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from beckon_contract.cloudevents.events import RELAYED, CloudEvent, from_http, to_binary
from tests.patience import PATIENCE

Answerer = Callable[["Request"], Awaitable[web.Response]]


@dataclass(frozen=True, slots=True)
class Request:
    """What a subscriber received."""

    headers: dict[str, str]
    body: bytes
    event: CloudEvent


@dataclass
class Subscriber:
    """Records every event, and answers: with the scripted answers first, then with `answer`."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    script: list[web.Response] = field(default_factory=list)
    answer: Answerer | None = None
    _arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def events(self) -> list[CloudEvent]:
        return [request.event for request in self.requests]

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        received = Request(
            headers, body, from_http(request.raw_headers, body, relayed=True, versions=RELAYED)
        )
        async with self._arrived:
            self.requests.append(received)
            self._arrived.notify_all()
        if self.script:
            return self.script.pop(0)
        return await self.answer(received) if self.answer else web.Response(status=202)

    async def wait(self, count: int = 1) -> list[Request]:
        """Return the requests once there are so many; fail after five seconds."""
        async with asyncio.timeout(PATIENCE), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)
        return self.requests


class Gate:
    """An answer that is held back until the gate is opened."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()

    def open(self) -> None:
        self._opened.set()

    async def __call__(self, _: Request) -> web.Response:
        await self._opened.wait()
        return web.Response()


@asynccontextmanager
async def subscriber(
    answer: Answerer | None = None, port: int = 0, host: str = "127.0.0.1"
) -> AsyncIterator[Subscriber]:
    """Start a subscriber on loopback, on a free port unless one is named."""
    found = Subscriber(answer=answer)
    app = web.Application(client_max_size=8 * 1024 * 1024)
    app.router.add_post("/{path:.*}", found.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    await site.start()
    found.url = f"http://{host}:{runner.addresses[0][1]}/"
    try:
        yield found
    finally:
        await runner.cleanup()


def event_response(event: CloudEvent, status: int = 200) -> web.Response:
    """Return a reply: the event in binary mode in an HTTP answer."""
    headers, body = to_binary(event)
    return web.Response(status=status, headers=dict(headers), body=body)
