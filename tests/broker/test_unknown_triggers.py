"""Stored deliveries for a Trigger that the process which gets them does not know."""

from pathlib import Path
from uuid import uuid4

import nats
import pytest

from beckon_broker.service import QueueLimits
from tests.broker.broker_process import RunningBroker, event, running_broker, service, trigger
from tests.broker.subscribers import subscriber
from tests.broker.test_jetstream import is_empty, stored_in
from tests.nats_server import NatsServer
from tests.patience import eventually

PATIENT = QueueLimits(unknown_seconds=60.0)
IMPATIENT = QueueLimits(unknown_seconds=0.2)


@pytest.fixture
def other_folder(tmp_path: Path) -> Path:
    """The manifests of the process that delivers."""
    path = tmp_path / "others"
    path.mkdir()
    return path


async def test_a_delivery_waits_for_the_trigger_that_another_process_has_read_first(
    folder: Path, other_folder: Path, nats_server: NatsServer
) -> None:
    settings = stored_in(nats_server, uuid4().hex[:16])
    async with (
        subscriber() as tool,
        running_broker(folder, trigger("t", tool.url), roles="ingress", **settings) as ingress,
        running_broker(other_folder, roles="dispatcher", limits=PATIENT, **settings) as dispatcher,
    ):
        await ingress.send(event("e1"))
        await eventually(lambda: _holds(dispatcher, 1))
        assert not tool.requests
        dispatcher.write(trigger("t", tool.url))
        await tool.wait()
        await eventually(lambda: is_empty(dispatcher))

    assert [each.id for each in tool.events] == ["e1"]


async def test_a_delivery_of_a_trigger_that_is_gone_is_dropped_and_counted(
    folder: Path, other_folder: Path, nats_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    settings = stored_in(nats_server, uuid4().hex[:16])
    async with (
        subscriber() as tool,
        running_broker(folder, trigger("t", tool.url), roles="ingress", **settings) as ingress,
        running_broker(other_folder, roles="dispatcher", limits=IMPATIENT, **settings) as dispatcher,
    ):
        await ingress.send(event("e1"))
        await eventually(lambda: is_empty(ingress))
        dropped = await dispatcher.metric("events_dropped_total", trigger="t", reason="trigger-deleted")

    assert dropped == 1
    assert not tool.requests
    assert "dropped event e1 (type test.call): Trigger default/t is not there any more" in caplog.text


async def test_a_delivery_of_a_trigger_that_is_not_ready_stays_in_the_log(
    folder: Path, other_folder: Path, nats_server: NatsServer
) -> None:
    settings = stored_in(nats_server, uuid4().hex[:16])
    async with subscriber() as tool:
        reference = {"kind": "Service", "apiVersion": "serving.knative.dev/v1", "name": "tool"}
        not_ready = trigger("t", {"ref": reference})
        async with (
            running_broker(folder, trigger("t", tool.url), roles="ingress", **settings) as ingress,
            running_broker(
                other_folder, not_ready, roles="dispatcher", limits=IMPATIENT, **settings
            ) as dispatcher,
        ):
            await ingress.send(event("e1"))
            await eventually(lambda: _was_stored_again(nats_server, settings["nats_stream"]))
            dispatcher.write(not_ready, service("tool", tool.url))
            await tool.wait()
            await eventually(lambda: is_empty(ingress))
            dropped = await dispatcher.metric("events_dropped_total")

    assert [each.id for each in tool.events] == ["e1"]
    assert dropped == 0


async def test_a_stopped_process_gives_back_a_delivery_that_waits_for_its_trigger(
    folder: Path, other_folder: Path, nats_server: NatsServer
) -> None:
    settings = {**stored_in(nats_server, uuid4().hex[:16]), "lease_seconds": 60.0}
    async with (
        subscriber() as tool,
        running_broker(folder, trigger("t", tool.url), roles="ingress", **settings) as ingress,
    ):
        async with running_broker(other_folder, roles="dispatcher", limits=PATIENT, **settings) as first:
            await ingress.send(event("e1"))
            await eventually(lambda: _holds(first, 1))
        async with running_broker(other_folder, trigger("t", tool.url), roles="dispatcher", **settings):
            await tool.wait()
            await eventually(lambda: is_empty(ingress))

    assert [each.id for each in tool.events] == ["e1"]


async def _holds(running: RunningBroker, count: int) -> bool:
    return bool((await running.status())["queue"]["held"] == count)


async def _was_stored_again(server: NatsServer, stream: str) -> bool:
    """Return True once more messages than one were stored in these streams."""
    client = await nats.connect(server.url)
    try:
        streams = await client.jetstream().streams_info()
    finally:
        await client.close()
    own = [each for each in streams if (each.config.name or "").startswith(stream)]
    stored: int = sum(each.state.last_seq for each in own)
    return stored > 1
