"""A thousand subscriptions over two replicas, one of which is killed: by its cursor, each misses nothing."""

import asyncio
import json
import resource
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from beckon_contract.cloudevents.events import CloudEvent, to_binary
from tests.agent.agent_process import AgentProcess, serving
from tests.agent.mcp.mcp_server import enveloped, routing
from tests.agent.mcp.test_events import event_type
from tests.agent.store.postgres import Server
from tests.broker.broker_process import write_manifests
from tests.patience import eventually

pytestmark = pytest.mark.timeout(180)

SUBSCRIPTIONS, SENT, KILLED_AFTER = 1_000, 16, 6
PLACED = "order.placed"
MANY = str(3 * SUBSCRIPTIONS)


@pytest.fixture(autouse=True)
def _many_files() -> Iterator[None]:
    """Let this process, and the agents that it starts, have a connection for each subscription."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8_192)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@dataclass(slots=True)
class Subscriber:
    """A client that goes on at the next replica with its cursor when its stream breaks."""

    session: aiohttp.ClientSession
    replicas: Iterator[str]
    events: list[str] = field(default_factory=list)
    cursor: str | None = None
    streams: int = 0
    truncated: bool = False

    async def follow(self) -> None:
        """Read until there are all events."""
        while len(set(self.events)) < SENT:
            try:
                async for message in self._stream(next(self.replicas)):
                    self._take(message)
                    if len(set(self.events)) == SENT:
                        return
            except (aiohttp.ClientError, ConnectionError):
                await asyncio.sleep(0.2)

    async def _stream(self, url: str) -> AsyncIterator[dict[str, Any]]:
        params = {"name": PLACED, "cursor": self.cursor}
        body, headers = enveloped("events/stream", params), routing("events/stream", params)
        async with self.session.post(f"{url}/mcp", json=body, headers=headers) as answer:
            async for line in answer.content:
                if line.startswith(b"data: "):
                    yield json.loads(line.removeprefix(b"data: "))

    def _take(self, message: dict[str, Any]) -> None:
        params = message["params"]
        self.cursor = params.get("cursor", self.cursor)
        match message["method"]:
            case "notifications/events/active":
                self.streams += 1
                self.truncated |= params["truncated"]
            case "notifications/events/event":
                self.events.append(params["data"]["id"])


async def deliver(session: aiohttp.ClientSession, urls: list[str], number: int) -> None:
    """Deliver an event as a Broker does: again, until a replica has taken it."""
    headers, body = to_binary(CloudEvent(str(number), "/shop", PLACED))
    for url in cycle(urls[number % 2 :] + urls[: number % 2]):
        try:
            async with session.post(f"{url}/feed", data=body, headers=dict(headers)) as answer:
                if answer.status == 204:
                    return
                assert answer.status == 503, await answer.text()
        except (aiohttp.ClientError, ConnectionError):
            pass
        await asyncio.sleep(0.1)


async def test_a_thousand_subscriptions_lose_nothing_with_a_replica(tmp_path: Path, postgres: Server) -> None:
    write_manifests(tmp_path, event_type(PLACED))
    shared = {
        "BECKON_MCP_EVENTS": "1000",
        "BECKON_MAX_CONNECTIONS": MANY,
        "BECKON_MAX_CONNECTIONS_PER_CLIENT": MANY,
    }
    settings = {**shared, "BECKON_STORE": await postgres.copy("feed")}
    async with (
        serving(tmp_path, **settings) as doomed,
        serving(tmp_path, **settings) as other,
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
        ) as session,
    ):
        await _lose_nothing(session, doomed, other)


async def _lose_nothing(session: aiohttp.ClientSession, doomed: AgentProcess, other: AgentProcess) -> None:
    urls = [str(one.http.base_url).rstrip("/") for one in (doomed, other)]
    subscribers = [
        Subscriber(session, cycle(urls[number % 2 :] + urls[: number % 2])) for number in range(SUBSCRIPTIONS)
    ]
    async with asyncio.timeout(150), asyncio.TaskGroup() as tasks:
        for subscriber in subscribers:
            tasks.create_task(subscriber.follow())

        async def all_subscribed() -> bool:
            return all(subscriber.cursor is not None for subscriber in subscribers)

        await eventually(all_subscribed, 100)
        for number in range(SENT):
            await deliver(session, urls, number)
            if number == KILLED_AFTER:
                doomed.kill()
            await asyncio.sleep(0.05)

    wanted = [str(number) for number in range(SENT)]
    assert all(sorted(set(one.events), key=int) == wanted for one in subscribers)
    assert not any(one.truncated for one in subscribers)
    assert sum(one.streams > 1 for one in subscribers) == SUBSCRIPTIONS / 2
