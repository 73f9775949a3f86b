"""A client's address for push notifications: what was posted there, and how it answers."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.patience import eventually
from tests.shim.support import Posted, Server, serving


@dataclass(slots=True)
class Receiver:
    """Each request is answered with the next of `statuses`, and with 200 after them."""

    server: Server
    statuses: list[int] = field(default_factory=list)

    @property
    def url(self) -> str:
        """The address without a path."""
        return self.server.url

    @property
    def posted(self) -> list[dict[str, Any]]:
        """The notifications."""
        return [json.loads(one.body) for one in self.server.posts]

    @property
    def states(self) -> list[str]:
        """The states of the tasks that were posted."""
        return [one["task"]["status"]["state"].removeprefix("TASK_STATE_") for one in self.posted]

    async def answer(self, _: Posted) -> web.Response:
        """Answer a request."""
        status = self.statuses.pop(0) if self.statuses else 200
        return web.Response(status=status, headers={"location": "/elsewhere"} if status == 302 else None)

    async def until(self, *states: str) -> None:
        """Wait until exactly these states were posted."""

        async def posted() -> bool:
            return self.states == list(states)

        await eventually(posted)


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """Receive at a free port of this machine."""
    async with serving() as server:
        receiver = Receiver(server)
        server.behaviour = receiver.answer
        yield receiver
