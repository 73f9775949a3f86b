"""The tasks of the log in JetStream end when they are cancelled, also if the library swallows that."""

import asyncio
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from beckon_broker.envelope import BrokerName, seal
from beckon_broker.held_deliveries import HeldDeliveries
from beckon_broker.jetstream import JetStreamLog, JetStreamOptions
from beckon_broker.log import QueuedDelivery
from beckon_broker.pull import Pull
from beckon_broker.queues import Queues
from beckon_broker.subjects import Subjects
from beckon_contract.knative.triggers import GROUP
from beckon_contract.kubernetes_objects import Key
from tests.broker.broker_process import event
from tests.nats_server import NatsServer
from tests.patience import PATIENCE, until


async def lose_cancellation(waits: asyncio.Event, *, fails: bool = True) -> None:
    """Wait until cancelled, and lose that the first time, as `Client._flush_pending` of nats-py does."""
    is_first = not waits.is_set()
    waits.set()
    try:
        await asyncio.sleep(PATIENCE)
    except asyncio.CancelledError:
        if not is_first:
            raise
        if fails:
            raise NatsError("nothing came") from None


class SwallowingClient(Client):
    """A client in which the first cancellation is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = asyncio.Event()

    async def request(self, *_: Any, **__: Any) -> Msg:
        await lose_cancellation(self.waits)
        raise AssertionError

    async def publish(self, *_: Any, **__: Any) -> None:
        await lose_cancellation(self.waits)


async def is_ended(task: asyncio.Task[None], waits: asyncio.Event) -> bool:
    """Cancel a task while it waits for the server; return True if it ends."""
    await asyncio.wait_for(waits.wait(), PATIENCE)
    task.cancel()
    await asyncio.wait((task,), timeout=PATIENCE)
    return task.cancelled()


async def test_looking_for_queues_ends(nats_server: NatsServer) -> None:
    client = SwallowingClient()
    await client.connect(nats_server.url)
    queues = Queues(client, Subjects("cancelled"), lambda _: None, 1, 30.0)

    assert await is_ended(asyncio.create_task(queues.run()), client.waits)
    await client.close()


async def test_pulling_ends(nats_server: NatsServer) -> None:
    client = SwallowingClient()
    await client.connect(nats_server.url)
    pull = Pull(client, "cancelled-0", "shared", lambda: 1, lambda _: None)

    assert await is_ended(asyncio.create_task(pull.run()), client.waits)
    await client.close()


@pytest.mark.parametrize("fails", [True, False], ids=["a-request-fails", "a-request-succeeds"])
async def test_making_the_streams_ends(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    waits, request = asyncio.Event(), Client.request

    async def swallowing(client: Client, *arguments: Any, **options: Any) -> Msg:
        if not waits.is_set():
            await lose_cancellation(waits, fails=fails)
        return await request(client, *arguments, **options)

    monkeypatch.setattr(Client, "request", swallowing)
    log = JetStreamLog(JetStreamOptions(nats_server.url, stream=f"cancelled-{fails}".lower()))
    run = asyncio.create_task(log.run(lambda _: None, lambda: None))

    assert await is_ended(run, waits)
    await log.close()


async def test_renewing_leases_ends(nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = asyncio.Event()
    monkeypatch.setattr(HeldDeliveries, "renew", lambda _: lose_cancellation(waits, fails=False))
    log = JetStreamLog(JetStreamOptions(nats_server.url, stream="cancelled-renew", lease_seconds=0.3))
    run = asyncio.create_task(log.run(lambda _: None, lambda: None))

    assert await is_ended(run, waits)
    await log.close()


async def test_going_on_after_a_lost_connection_ends(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = asyncio.Event()
    log = JetStreamLog(JetStreamOptions(nats_server.url, stream="cancelled-resume"))
    run = asyncio.create_task(log.run(lambda _: None, lambda: None))
    await until(lambda: not log.problem)
    monkeypatch.setattr(JetStreamLog, "_make_streams", lambda _: lose_cancellation(waits, fails=False))

    nats_server.kill()
    nats_server.start()

    assert await is_ended(run, waits)
    await log.close()


async def test_storing_an_event_ends(nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = asyncio.Event()
    log = JetStreamLog(JetStreamOptions(nats_server.url, stream="cancelled-append"))
    run = asyncio.create_task(log.run(lambda _: None, lambda: None))
    await until(lambda: not log.problem)
    envelope = seal(BrokerName("default", "default"), event())

    async def swallowing(*_: Any, **__: Any) -> None:
        await lose_cancellation(waits)

    monkeypatch.setattr(Client, "publish", swallowing)
    queued = [QueuedDelivery(Key(GROUP, "Trigger", "default", "t"), envelope)]
    assert await is_ended(asyncio.create_task(log.append(queued, is_reply=True)), waits)

    monkeypatch.undo()
    await log.close()
    run.cancel()
    await asyncio.wait((run,), timeout=PATIENCE)
