"""Outages of NATS: nothing is delivered a second time, and no reply is given up. Calls are stored once."""

import asyncio
from pathlib import Path
from uuid import uuid4

import nats
from aiohttp import web

from beckon_broker.envelope import BrokerName, seal
from beckon_broker.jetstream import JetStreamLog, JetStreamOptions
from beckon_broker.log import HeldDelivery, QueuedDelivery
from beckon_contract.knative.triggers import GROUP
from beckon_contract.kubernetes_objects import Key
from tests.broker.broker_process import RunningBroker, broker, delivery, event, running_broker, trigger
from tests.broker.subscribers import Gate, Request, event_response, subscriber
from tests.broker.test_jetstream import TOKEN, is_empty, stored_in
from tests.nats_server import NatsServer
from tests.patience import eventually, until


async def test_a_delivery_that_a_broker_holds_outlasts_an_outage_of_the_server(
    folder: Path, own_server: NatsServer
) -> None:
    """The server hands it out again, but the broker that still holds it knows it."""
    held = Gate()
    settings = stored_in(own_server)
    async with subscriber(held) as tool, subscriber() as sink:
        manifests = broker(delivery=delivery(3, sink.url)), trigger("t", tool.url)
        async with running_broker(folder, *manifests, **settings) as running:
            await running.send(event("once").extended(correlationid=TOKEN))
            await tool.wait()
            own_server.kill()
            await asyncio.sleep(settings["lease_seconds"])
            own_server.start()
            await running.wait_until_ready()
            await running.send(event("later"))
            await tool.wait(2)
            held.open()
            await eventually(lambda: is_empty(running))

    assert sorted(each.id for each in tool.events) == ["later", "once"]
    assert not sink.requests


async def test_what_is_delivered_during_an_outage_of_the_server_is_not_delivered_again(
    folder: Path, own_server: NatsServer
) -> None:
    held = Gate()
    settings = stored_in(own_server)
    async with (
        subscriber(held) as tool,
        running_broker(folder, trigger("t", tool.url), **settings) as running,
    ):
        for number in range(20):
            await running.send(event(f"e{number}"))
        await tool.wait(20)
        own_server.kill()
        held.open()
        await eventually(lambda: _has_delivered(running, 20))
        await asyncio.sleep(settings["lease_seconds"])
        own_server.start()
        await running.wait_until_ready()
        await running.send(event("later"))
        await tool.wait(21)
        await eventually(lambda: is_empty(running))

    assert len(tool.events) == 21


async def test_a_call_that_is_posted_again_is_stored_once(folder: Path, nats_server: NatsServer) -> None:
    """Also by another ingress. Other events are stored as often as they are posted."""
    settings = stored_in(nats_server, uuid4().hex[:16])
    call = event("call").extended(correlationid=TOKEN)
    async with subscriber() as tool:
        route = trigger("t", tool.url)
        async with (
            running_broker(folder, route, **settings) as one,
            running_broker(folder, route, **settings) as two,
        ):
            answers = [await each.send(call) for each in (one, one, two)]
            await one.send(event("call").extended(correlationid=TOKEN.replace("A", "B")))
            await one.send(event("event"))
            await two.send(event("event"))
            await tool.wait(4)
            await eventually(lambda: is_empty(one))

    assert sorted(each.id for each in tool.events) == ["call", "call", "event", "event"]
    assert {answer.status for answer in answers} == {202}
    assert {int(answer.headers["beckon-deduplication-seconds"]) for answer in answers} == {50}


async def test_a_reply_waits_for_a_server_that_is_away(folder: Path, own_server: NatsServer) -> None:
    """Its tool has done its work, so it is not given up, although nothing is retried here."""
    held = Gate()

    async def answer(request: Request) -> web.Response:
        await held(request)
        return event_response(event("reply", "test.reply"))

    async with subscriber(answer) as tool, subscriber() as shim, subscriber() as sink:
        manifests = [
            broker(delivery=delivery(0, sink.url)),
            trigger("tool", tool.url, filter={"attributes": {"type": "test.call"}}),
            trigger("replies", shim.url, filter={"attributes": {"replyid": ""}}),
        ]
        async with running_broker(folder, *manifests, **stored_in(own_server)) as running:
            await running.send(event("call").extended(correlationid=TOKEN))
            await tool.wait()
            own_server.kill()
            held.open()
            await eventually(lambda: running.metric("events_refused_total", reason="log-unavailable"))
            own_server.start()
            [arrived] = await shim.wait()
            await eventually(lambda: is_empty(running))

    assert arrived.event.extensions["replyid"] == TOKEN
    assert len(tool.requests) == 1
    assert not sink.requests


async def _has_delivered(running: RunningBroker, count: int) -> bool:
    return await running.metric("deliveries_total") == count


async def test_what_has_ended_right_before_a_log_is_closed_is_removed(nats_server: NatsServer) -> None:
    """Deliveries are acknowledged a few milliseconds after their end, and the last ones at the close."""
    stream, held = uuid4().hex[:16], list[HeldDelivery]()
    log = JetStreamLog(JetStreamOptions(nats_server.url, stream=stream))
    running = asyncio.create_task(log.run(held.append, lambda: None))
    await until(lambda: not log.problem)
    envelope = seal(BrokerName("default", "default"), event("once"))
    queued = [QueuedDelivery(Key(GROUP, "Trigger", "default", name), envelope) for name in ("a", "b")]
    await log.append(queued, is_reply=False)
    await until(lambda: len(held) == 2)
    stored = await _messages_of(nats_server, stream)
    for each in held:
        await each.settle()
    await log.close()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert stored == 2
    assert await _messages_of(nats_server, stream) == 0


async def _messages_of(server: NatsServer, prefix: str) -> int:
    """Return the number of messages in the streams of a broker."""
    client = await nats.connect(server.url)
    try:
        infos = await client.jetstream().streams_info()
        return sum(info.state.messages for info in infos if str(info.config.name).startswith(prefix))
    finally:
        await client.close()
