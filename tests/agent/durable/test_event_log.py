"""What those who follow a run hear of it while it is in progress."""

import asyncio
from contextlib import aclosing

from beckon_agent.core.run_events import CallFinished, CallProgressed, CallStarted, RunEvent
from beckon_agent.durable.event_log import Broadcast

STARTED = CallStarted("1", "f", {})
FINISHED = CallFinished("1", "f", "out", False, 0.1)


def report(done: float) -> CallProgressed:
    return CallProgressed("1", "f", done, 3, "")


async def followed(broadcast: Broadcast, after: int = 0) -> list[tuple[int, RunEvent]]:
    """Return what a follower hears that comes now, and who stays to the end."""
    broadcast.close()
    async with aclosing(broadcast.follow(after)) as events:
        return [event async for event in events]


async def test_a_report_takes_no_number_and_the_newest_is_received() -> None:
    broadcast = Broadcast()
    broadcast.publish(STARTED)
    broadcast.publish_report(report(1))
    broadcast.publish_report(report(2))

    assert await followed(broadcast) == [(1, STARTED), (1, report(2))]
    assert broadcast.events == [STARTED]


async def test_no_one_gets_a_report_before_the_call_or_behind_its_end() -> None:
    broadcast = Broadcast()
    broadcast.publish_report(report(1))
    async with aclosing(broadcast.follow()) as events:
        coming = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        assert not coming.done()
        broadcast.publish(STARTED)
        assert await coming == (1, STARTED)
        assert await anext(events) == (1, report(1))
        broadcast.publish(FINISHED)
        assert await anext(events) == (2, FINISHED)

    assert await followed(broadcast) == [(1, STARTED), (2, FINISHED)]


async def test_each_follower_gets_a_report_once() -> None:
    broadcast = Broadcast()
    broadcast.publish(STARTED)
    broadcast.publish_report(report(1))
    async with aclosing(broadcast.follow()) as events:
        assert [await anext(events), await anext(events)] == [(1, STARTED), (1, report(1))]
        broadcast.publish(FINISHED)
        assert await anext(events) == (2, FINISHED)
