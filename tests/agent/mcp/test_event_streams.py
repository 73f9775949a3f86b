"""The life of a stream of events: its heartbeats, its limit, and its end when the type is withdrawn."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from beckon_agent.api.mcp import event_methods
from beckon_agent.api.mcp.event_feed import MOST_EVENTS
from beckon_agent.api.mcp.server import McpSettings
from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store
from beckon_contract.cloudevents.events import CloudEvent
from beckon_contract.knative.eventtypes import EventType, parse_event_type
from beckon_contract.kubernetes_objects import from_object
from tests.agent.mcp.mcp_server import McpServer, mcp_server
from tests.agent.mcp.task_client import TaskClient
from tests.agent.mcp.test_events import event_type
from tests.patience import PATIENCE

PLACED = "order.placed"


@dataclass(slots=True)
class Stage:
    """A face with a feed, and the event types of its agent."""

    server: McpServer
    store: Store
    offered: list[EventType]

    @asynccontextmanager
    async def stream(self, request: str, **more: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
        """Open a stream, and read its messages in the block."""
        client = TaskClient(self.server.http)
        async with (
            client.stream("events/stream", name=request, **more) as messages,
            asyncio.timeout(PATIENCE),
        ):
            yield messages

    async def send(self, number: int) -> None:
        await self.store.feed.append("default", CloudEvent(str(number), "/shop", PLACED), keep=1000)


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    store = await open_store("sqlite://")
    offered = [parse_event_type(from_object(event_type(PLACED)))]
    settings = McpSettings(feed=store.feed, max_listeners=1)
    async with mcp_server("http://127.0.0.1:9", folder, settings, event_types=offered) as server:
        yield Stage(server, store, offered)
    await store.aclose()


async def test_a_silent_stream_has_heartbeats_with_its_cursor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_methods, "_HEARTBEAT", 0.4)
    async with stage(tmp_path) as made, made.stream(PLACED) as messages:
        active = await anext(messages)
        beat = await anext(messages)
        await made.send(1)
        event = await anext(messages)
        while event["method"].endswith("heartbeat"):
            event = await anext(messages)
        last = await anext(messages)

    assert beat["method"] == last["method"] == "notifications/events/heartbeat"
    assert beat["params"]["cursor"] == active["params"]["cursor"]
    assert last["params"]["cursor"] == event["params"]["cursor"]


async def test_a_stream_sends_all_pages_behind_its_cursor_before_what_comes(tmp_path: Path) -> None:
    count = 2 * MOST_EVENTS + 50
    async with stage(tmp_path) as made:
        cursor = (await TaskClient(made.server.http).result("events/poll", name=PLACED))["cursor"]
        for number in range(count):
            await made.send(number)
        async with made.stream(PLACED, cursor=cursor) as messages:
            active = await anext(messages)
            events = [await anext(messages) for _ in range(count)]
            await made.send(count)
            events.append(await anext(messages))

    assert active["method"] == "notifications/events/active"
    assert [event["params"]["eventId"] for event in events] == [f"/shop {n}" for n in range(count + 1)]


async def test_one_stream_too_many_is_an_error_that_names_the_limit(tmp_path: Path) -> None:
    async with stage(tmp_path) as made, made.stream(PLACED) as messages:
        await anext(messages)
        error = await TaskClient(made.server.http).error("events/stream", name=PLACED)

    assert (error["code"], error["data"]) == (-32025, {"limit": "streams", "max": 1})
    assert "events/poll" in error["message"]


async def test_a_stream_ends_when_its_type_can_no_longer_be_read(tmp_path: Path) -> None:
    async with stage(tmp_path) as made, made.stream(PLACED) as messages:
        await anext(messages)
        made.offered.clear()
        await made.send(1)
        rest = [message async for message in messages]

    terminated = next(one for one in rest if one.get("method") == "notifications/events/terminated")
    assert terminated["params"]["error"]["code"] == -32024
    assert rest[-1]["result"]["resultType"] == "complete"
