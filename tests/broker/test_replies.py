import asyncio
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from beckon_broker.service import QueueLimits
from beckon_contract.cloudevents.events import CloudEvent, to_structured
from tests.broker.broker_process import delivery, event, running_broker, trigger
from tests.broker.subscribers import Answerer, Gate, Request, event_response, subscriber
from tests.patience import PATIENCE, eventually

CALL = {"attributes": {"type": "test.call"}}
REPLY = {"attributes": {"replyid": ""}}
ANSWER = CloudEvent(
    "r1", "/tool", "test.answer", b'{"x":1}', "application/json", extensions={"replyid": "c1"}
)


def answering(response: web.Response) -> Answerer:
    async def answer(_: Request) -> web.Response:
        return response

    return answer


@pytest.mark.parametrize("status", [200, 201, 202, 299])
async def test_an_event_in_any_success_answer_goes_back_through_the_broker(
    tmp_path: Path, status: int
) -> None:
    async with (
        subscriber(answering(event_response(ANSWER, status))) as tool,
        subscriber() as waiter,
        running_broker(
            tmp_path, trigger("call", tool.url, filter=CALL), trigger("reply", waiter.url, filter=REPLY)
        ) as running,
    ):
        await running.send(event(correlationid="c1"))
        [reply] = await waiter.wait()

    assert reply.event.without("knativearrivaltime") == ANSWER
    assert len(tool.requests) == 1


async def test_a_structured_reply_counts_too(tmp_path: Path) -> None:
    headers, body = to_structured(ANSWER)
    response = web.Response(headers=dict(headers), body=body)
    async with (
        subscriber(answering(response)) as tool,
        subscriber() as waiter,
        running_broker(
            tmp_path, trigger("call", tool.url, filter=CALL), trigger("reply", waiter.url, filter=REPLY)
        ) as running,
    ):
        await running.send(event())
        [reply] = await waiter.wait()

    assert reply.event.without("knativearrivaltime") == ANSWER


@pytest.mark.parametrize("status", [200, 202, 204])
async def test_an_empty_success_answer_ends_the_delivery(tmp_path: Path, status: int) -> None:
    async with (
        subscriber(answering(web.Response(status=status))) as tool,
        subscriber() as sink,
        running_broker(tmp_path, trigger("t", tool.url, delivery=delivery(3, sink.url))) as running,
    ):
        await running.send(event())

        async def delivered() -> bool:
            return await running.metric("deliveries_total") == 1

        await eventually(delivered)

    assert (len(tool.requests), len(sink.requests)) == (1, 0)


UNUSABLE: dict[str, tuple[dict[str, str], bytes]] = {
    "plain-json": ({"content-type": "application/json"}, b'{"ok":true}'),
    "text": ({"content-type": "text/plain"}, b"done"),
    "no-type": ({"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s"}, b""),
    "batch": ({"content-type": "application/cloudevents-batch+json"}, b"[]"),
    "empty-structured": ({"content-type": "application/cloudevents+json"}, b""),
    "compressed": ({"ce-specversion": "1.0", "content-encoding": "gzip"}, b"\x1f\x8b"),
}


async def test_an_unusable_success_answer_is_dead_lettered_without_a_second_call(tmp_path: Path) -> None:
    async def answer(request: Request) -> web.Response:
        headers, body = UNUSABLE[request.event.id]
        return web.Response(headers=headers, body=body)

    async with (
        subscriber(answer) as tool,
        subscriber() as sink,
        running_broker(tmp_path, trigger("t", tool.url, delivery=delivery(5, sink.url))) as running,
    ):
        for name in UNUSABLE:
            await running.send(event(name))
        letters = await sink.wait(len(UNUSABLE))

    assert sorted(each.id for each in tool.events) == sorted(UNUSABLE)
    assert sorted(each.event.id for each in letters) == sorted(UNUSABLE)
    assert {each.event.extensions["knativeerrorcode"] for each in letters} == {"502"}


async def test_a_reply_beyond_the_size_limit_is_dead_lettered(tmp_path: Path) -> None:
    large = CloudEvent("r1", "/tool", "test.answer", b"x" * 100_001)
    async with (
        subscriber(answering(event_response(large))) as tool,
        subscriber() as sink,
        running_broker(
            tmp_path, trigger("t", tool.url, delivery=delivery(5, sink.url)), max_event_bytes=100_000
        ) as running,
    ):
        await running.send(event())
        [letter] = await sink.wait()

    assert len(tool.requests) == 1
    assert letter.event.extensions["knativeerrorcode"] == "502"


async def test_a_reply_that_its_own_trigger_matches_stops_when_the_ttl_is_used_up(tmp_path: Path) -> None:
    async def echo(request: Request) -> web.Response:
        return event_response(event(f"reply-to-{request.event.id}"[-40:], knativebrokerttl="255"))

    async with (
        subscriber(echo) as tool,
        subscriber() as sink,
        running_broker(tmp_path, trigger("loop", tool.url, delivery=delivery(3, sink.url))) as running,
    ):
        await running.send(event(knativebrokerttl="6"))
        [letter] = await sink.wait()
        refused = await running.metric("events_refused_total", reason="ttl-exhausted")

    assert len(tool.requests) == 5
    assert refused == 1
    assert letter.event.extensions["knativeerrorcode"] == "400"
    assert letter.event.extensions["knativeerrordest"] == f"{running.url}/default/default"


async def test_a_loop_without_a_ttl_of_its_own_ends_after_255_passages(tmp_path: Path) -> None:
    async def echo(request: Request) -> web.Response:
        return event_response(event("again"))

    async with (
        subscriber(echo) as tool,
        subscriber() as sink,
        running_broker(tmp_path, trigger("loop", tool.url, delivery=delivery(0, sink.url))) as running,
    ):
        await running.send(event())
        await sink.wait()

    assert len(tool.requests) == 255


async def test_a_reply_reaches_every_trigger_that_passes_it(tmp_path: Path) -> None:
    async with (
        subscriber(answering(event_response(ANSWER))) as tool,
        subscriber() as one,
        subscriber() as two,
        running_broker(
            tmp_path,
            trigger("call", tool.url, filter=CALL),
            trigger("one", one.url, filter=REPLY),
            trigger("two", two.url, filter={"attributes": {"type": "test.answer"}}),
        ) as running,
    ):
        await running.send(event())

        await asyncio.gather(one.wait(), two.wait())


@pytest.mark.memory_log
async def test_a_reply_that_finds_no_room_is_tried_again_without_calling_the_tool_again(
    tmp_path: Path,
) -> None:
    """The reply is larger than the room that one held-up call leaves, until that call ends."""
    held = Gate()
    reply = CloudEvent("r1", "/tool", "test.answer", b"x" * 60_000, extensions={"replyid": "1"})
    async with (
        subscriber(answering(event_response(reply))) as tool,
        subscriber(held) as slow,
        subscriber() as waiter,
        running_broker(
            tmp_path,
            trigger("slow", slow.url, filter={"attributes": {"type": "test.slow"}}),
            trigger("call", tool.url, filter=CALL, delivery=delivery(500, backoffPolicy="linear")),
            trigger("reply", waiter.url, filter=REPLY),
            limits=QueueLimits(size=61_000),
        ) as running,
    ):
        await running.send(event("s", "test.slow", data=b"y" * 50_000))
        await slow.wait()
        assert (await running.send(event())).status == 202
        await tool.wait()

        async def reply_refused() -> bool:
            return await running.metric("events_refused_total", reason="queue-full") >= 2

        await eventually(reply_refused)
        assert not waiter.requests
        held.open()
        [received] = await waiter.wait()

    assert received.event.data == reply.data
    assert len(tool.requests) == 1


async def test_a_broker_that_drains_still_takes_the_replies_to_what_it_accepted(
    tmp_path: Path, log: str
) -> None:
    release = asyncio.Event()

    async def answer(_: Request) -> web.Response:
        await release.wait()
        return event_response(ANSWER)

    async with subscriber(answer) as tool, subscriber() as waiter:
        triggers = (trigger("call", tool.url, filter=CALL), trigger("reply", waiter.url, filter=REPLY))
        async with running_broker(tmp_path, *triggers, drain_seconds=PATIENCE) as running:
            await running.send(event())
            await tool.wait()
            running.service.stop()

            async def refuses() -> bool:
                return (await running.send(event("late"))).status == 503

            async def has_drained() -> bool:
                try:
                    await running.send(event("late"))
                except aiohttp.ClientConnectionError:
                    return True
                return False

            await eventually(refuses)
            release.set()
            await eventually(has_drained)  # the end of the block would break off what is still delivered
        if log == "jetstream":  # a broker that drains pulls no more, so the next one may deliver the reply
            async with running_broker(tmp_path, *triggers):
                [reply] = await waiter.wait()
        else:
            [reply] = await waiter.wait()

    assert reply.event.id == ANSWER.id
