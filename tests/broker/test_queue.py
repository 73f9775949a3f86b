import asyncio
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from beckon_broker.memory_log import Backlog, Ticket
from beckon_broker.service import QueueLimits
from tests.broker.broker_process import delivery, event, running_broker, trigger
from tests.broker.subscribers import Gate, Request, subscriber
from tests.patience import eventually


@pytest.mark.parametrize(
    "limits", [QueueLimits(deliveries=8), QueueLimits(size=8_000)], ids=["by number", "by bytes"]
)
async def test_a_full_queue_answers_503_and_loses_nothing_it_accepted(
    tmp_path: Path, limits: QueueLimits
) -> None:
    held = Gate()
    async with (
        subscriber(held) as tool,
        running_broker(tmp_path, trigger("t", tool.url), concurrency=2, limits=limits) as running,
    ):
        answers = [await running.send(event(f"e{n}", data=b"x" * 800)) for n in range(20)]
        accepted = {f"e{n}" for n, answer in enumerate(answers) if answer.status == 202}
        refused = [answer for answer in answers if answer.status != 202]
        held.open()
        await tool.wait(len(accepted))

        async def room() -> bool:
            return (await running.send(event("late"))).status == 202

        await eventually(room)
        await tool.wait(len(accepted) + 1)

    assert 5 <= len(accepted) <= 8
    assert {answer.status for answer in refused} == {503}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    assert {each.id for each in tool.events} == accepted | {"late"}


async def test_an_event_is_accepted_for_all_its_triggers_or_for_none(tmp_path: Path) -> None:
    held = Gate()
    async with (
        subscriber(held) as one,
        subscriber() as two,
        running_broker(
            tmp_path,
            trigger("one", one.url),
            trigger("two", two.url, filter={"attributes": {"type": "test.both"}}),
            limits=QueueLimits(deliveries=2),
        ) as running,
    ):
        statuses = [(await running.send(event(f"e{n}"))).status for n in range(1)]
        await one.wait()
        both = await running.send(event("both", "test.both"))
        held.open()

    assert statuses == [202]
    assert both.status == 503
    assert not two.requests


async def test_a_slow_subscriber_does_not_hold_up_another(tmp_path: Path) -> None:
    held = Gate()
    async with (
        subscriber(held) as slow,
        subscriber() as fast,
        running_broker(
            tmp_path, trigger("slow", slow.url), trigger("fast", fast.url), concurrency=1
        ) as running,
    ):
        for number in range(20):
            await running.send(event(f"e{number}"))
        await fast.wait(20)
        assert len(slow.requests) == 1
        held.open()
        await slow.wait(20)


async def test_the_attempts_of_a_trigger_run_at_once_up_to_its_concurrency(tmp_path: Path) -> None:
    running_now, most = 0, 0
    four = asyncio.Event()

    async def count(_: Request) -> web.Response:
        nonlocal running_now, most
        running_now += 1
        most = max(most, running_now)
        if most == 4:
            four.set()
        await four.wait()  # the first ones, for each other
        await asyncio.sleep(0.01)
        running_now -= 1
        return web.Response()

    async with (
        subscriber(count) as tool,
        running_broker(tmp_path, trigger("t", tool.url), concurrency=4) as running,
    ):
        for number in range(24):
            await running.send(event(f"e{number}"))
        await tool.wait(24)

    assert most == 4


async def test_a_delivery_that_waits_for_its_next_attempt_holds_up_no_other(tmp_path: Path) -> None:
    async def answer(request: Request) -> web.Response:
        return web.Response(status=503 if request.event.id == "bad" else 200)

    long = delivery(5, backoffDelay="PT1H")
    async with (
        subscriber(answer) as tool,
        running_broker(tmp_path, trigger("t", tool.url, delivery=long), concurrency=1) as running,
    ):
        await running.send(event("bad"))
        await running.send(event("good"))
        await tool.wait(2)
        status = await running.trigger_status("t")

    assert [each.id for each in tool.events] == ["bad", "good"]
    assert status["queued"] in {1, 2}


@given(
    steps=st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 500), st.booleans(), st.integers(0, 3)), max_size=60
    )
)
def test_the_backlog_never_exceeds_its_bounds_and_ends_empty(steps: list[tuple[int, int, bool, int]]) -> None:
    backlog = Backlog(max_deliveries=10, max_bytes=1000)
    tickets: list[Ticket] = []
    for deliveries, size, is_reply, finished in steps:
        ticket = backlog.admit(deliveries, size, is_reply=is_reply)
        if ticket is not None:
            tickets += [ticket] * deliveries
        assert backlog.deliveries == len(tickets) <= 12
        assert backlog.bytes <= 1250
        for _ in range(min(finished, len(tickets))):
            tickets.pop(size % len(tickets)).close_one()

    for ticket in tickets:
        ticket.close_one()
    assert (backlog.deliveries, backlog.events, backlog.bytes) == (0, 0, 0)


def test_an_empty_backlog_takes_an_event_beyond_its_bounds() -> None:
    backlog = Backlog(max_deliveries=2, max_bytes=10)

    assert backlog.admit(5, 100, is_reply=False) is not None
    assert backlog.admit(1, 1, is_reply=False) is None
