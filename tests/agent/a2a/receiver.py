"""A client's address for push notifications: what was posted there, and how it answers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.patience import eventually


@dataclass(slots=True)
class Receiver:
    """Each request is answered with the next of `statuses`, and with 200 after them."""

    url: str
    statuses: list[int] = field(default_factory=list)
    posted: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def states(self) -> list[str]:
        """The states of the tasks that were posted."""
        return [one["task"]["status"]["state"].removeprefix("TASK_STATE_") for one in self.posted]

    async def until(self, *states: str) -> None:
        """Wait until exactly these states were posted."""

        async def posted() -> bool:
            return self.states == list(states)

        await eventually(posted)


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """Receive at a free port of this machine."""
    receiver = Receiver("")

    async def take(request: web.Request) -> web.Response:
        receiver.posted.append(await request.json())
        receiver.headers.append({name.lower(): value for name, value in request.headers.items()})
        status = receiver.statuses.pop(0) if receiver.statuses else 200
        return web.Response(status=status, headers={"location": "/elsewhere"} if status == 302 else None)

    app = web.Application()
    app.add_routes([web.post("/{path:.*}", take)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield receiver
    finally:
        await runner.cleanup()
