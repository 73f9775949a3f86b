"""How often Tools and Triggers are written until a new tool is ready."""

import asyncio
import copy
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from beckon_operator import desired_state
from beckon_operator.keyed_queue import KeyedQueue
from beckon_operator.metrics import Metrics
from beckon_sources.api_types import Refused
from tests.operator.broker_class.class_platform import NAMESPACE, ClassPlatform, class_platform, until
from tests.operator.broker_class.test_class import URI, apply_broker, apply_trigger
from tests.operator.documents import PARAMETERS, SHIM

REPLIES: dict[str, Any] = {
    "filter": {"attributes": {"replyid": ""}},
    "subscriber": {"uri": f"{SHIM}/replies"},
}


@asynccontextmanager
async def platform_with_broker() -> AsyncIterator[ClassPlatform]:
    """Run the class with a Broker that brings replies."""
    async with class_platform() as platform:
        await apply_broker(platform, delivery={"deadLetterSink": {"uri": f"{SHIM}/dead-letters"}})
        await apply_trigger(platform, "replies", **REPLIES)
        await platform.wait_for("triggers", "replies", "True")
        yield platform


async def apply_event_type(platform: ClassPlatform, name: str) -> None:
    spec = {"type": name, "description": "The weather."}
    annotations = {"beckon.dev/parameters": PARAMETERS}
    await platform.apply("eventtypes", name, spec, annotations=annotations)


async def apply_route(platform: ClassPlatform, name: str) -> None:
    await apply_trigger(platform, name, URI, filter={"attributes": {"type": name}})


async def wait_for_tool(platform: ClassPlatform, name: str, status: str) -> None:
    await until(lambda: ("tools", NAMESPACE, name) in platform.api.objects, lambda: f"no Tool {name}")
    await platform.wait_for("tools", name, status)


def writes(platform: ClassPlatform, plural: str) -> Counter[str]:
    """Return how often each object was written; the first write of a Tool has no name in its path."""
    named = (path for method, path in platform.api.requests if method in ("PUT", "PATCH"))
    return Counter(path.split("/")[7] for path in named if f"/{plural}/" in path)


def creations(platform: ClassPlatform) -> int:
    return sum(method == "POST" and path.endswith("/tools") for method, path in platform.api.requests)


async def test_tools_whose_triggers_come_at_once_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desired_state, "_SETTLING_SECONDS", 600.0)
    names = [f"weather-{number}" for number in range(50)]
    async with platform_with_broker() as platform:
        for name in names:
            await apply_event_type(platform, name)
            await apply_route(platform, name)
        for name in names:
            await wait_for_tool(platform, name, "True")

        assert (creations(platform), writes(platform, "tools")) == (50, Counter())
        # When its addresses are known, when the pods route by it, and between them if that takes seconds.
        assert max(writes(platform, "triggers")[name] for name in names) <= 3


async def test_a_tool_without_a_trigger_is_written_too_and_again_once_it_is_ready() -> None:
    async with platform_with_broker() as platform:
        await apply_event_type(platform, "weather")
        await wait_for_tool(platform, "weather", "False")
        await apply_route(platform, "weather")
        await wait_for_tool(platform, "weather", "True")

        # The second state that is not ready yet may last longer than a second on a busy machine.
        assert (creations(platform), writes(platform, "tools")["weather"]) in ((1, 1), (1, 2), (1, 3))


async def test_a_tool_that_was_ready_is_taken_back_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desired_state, "_SETTLING_SECONDS", 600.0)
    async with platform_with_broker() as platform:
        await apply_event_type(platform, "weather")
        await apply_route(platform, "weather")
        await wait_for_tool(platform, "weather", "True")
        await platform.api.delete("triggers", "weather", NAMESPACE)

        await platform.wait_for("tools", "weather", "False")


async def test_a_status_in_conflict_is_written_against_the_newer_version() -> None:
    async with platform_with_broker() as platform:
        await apply_trigger(platform, "weather")
        await platform.wait_for("triggers", "weather", "True")
        # A version that no watch reports.
        key = "triggers", NAMESPACE, "weather"
        platform.api.version += 1
        platform.api.objects[key] = copy.deepcopy(platform.api.objects[key])
        platform.api.objects[key]["metadata"]["resourceVersion"] = str(platform.api.version)
        await platform.api.delete("brokers", "default", NAMESPACE)

        reason, _ = await platform.wait_for("triggers", "weather", "False")
        assert reason == "BrokerDoesNotExist"


async def test_an_item_that_is_queued_while_it_is_written_is_written_once_more_afterwards() -> None:
    queue: KeyedQueue[tuple[str, str]] = KeyedQueue()
    item, begun, running, most = ("team", "a"), 0, 0, 0
    failures = Metrics().failures.labels("write")

    async def write(found: tuple[str, str]) -> None:
        nonlocal begun, running, most
        begun, running = begun + 1, running + 1
        most = max(most, running)
        if begun == 1:
            queue.put(found)
            queue.put(found)
        await asyncio.sleep(0.01)
        running -= 1
        if begun == 2:
            raise Refused(503, "busy")

    writing = asyncio.create_task(
        queue.write_items(write, at_once=4, leads=lambda: True, what="Tool", failures=failures)
    )
    queue.put(item)
    await until(lambda: begun == 3 and not running, lambda: f"{begun} writes")
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)

    assert (most, len(queue), failures._value.get()) == (1, 0, 1)
