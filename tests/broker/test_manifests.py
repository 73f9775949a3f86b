import asyncio
from pathlib import Path

import aiohttp
from aiohttp import web

from beckon_broker.service import Service
from beckon_broker.settings import Settings
from beckon_runtime.process import listen
from tests.broker.broker_process import (
    RunningBroker,
    broker,
    delivery,
    event,
    running_broker,
    service,
    trigger,
    write_manifests,
)
from tests.broker.subscribers import Gate, Request, subscriber
from tests.patience import PATIENCE, eventually

REF = {"ref": {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "tool"}}


async def test_a_subscriber_is_found_by_the_address_its_service_publishes(tmp_path: Path) -> None:
    async with (
        subscriber() as tool,
        running_broker(
            tmp_path, trigger("t", {**REF, "uri": "/calls"}), service("tool", tool.url)
        ) as running,
    ):
        await running.send(event())
        await tool.wait()
        status = await running.trigger_status("t")

    assert status["ready"] is True
    assert status["subscriber"] == tool.url + "calls"


async def test_a_trigger_without_an_address_is_not_ready_until_there_is_one(tmp_path: Path) -> None:
    async with subscriber() as tool, running_broker(tmp_path, trigger("t", REF)) as running:
        before = await running.trigger_status("t")
        running.write(trigger("t", REF), service("tool", tool.url))
        await eventually(lambda: _ready(running, "t"))
        await running.send(event())
        await tool.wait()

    assert (before["ready"], before["reason"]) == (False, "SubscriberUnresolved")
    assert "tool" in str(before["message"])


async def test_a_dead_letter_sink_without_an_address_makes_its_triggers_not_ready(tmp_path: Path) -> None:
    spec = {"deadLetterSink": REF}
    async with (
        subscriber() as tool,
        running_broker(
            tmp_path,
            broker(delivery=spec),
            trigger("inherits", tool.url),
            trigger("own", tool.url, delivery=spec),
            trigger("free", tool.url, delivery={"retry": 1}),
        ) as running,
    ):
        found = {name: await running.trigger_status(name) for name in ("inherits", "own", "free")}

    assert found["inherits"]["reason"] == found["own"]["reason"] == "DeadLetterSinkUnresolved"
    assert "Broker" in str(found["inherits"]["message"])
    assert found["free"]["ready"] is True


async def test_an_event_is_not_lost_to_a_trigger_that_its_sender_knows_sooner_than_the_broker(
    tmp_path: Path,
) -> None:
    async with subscriber() as tool, running_broker(tmp_path, broker()) as running:
        for number in range(5):
            kind = f"test.new{number}"
            running.write(broker(), trigger("t", tool.url, filter={"attributes": {"type": kind}}))
            answers = await asyncio.gather(*(running.send(event(f"{number}.{i}", kind)) for i in range(8)))
            await tool.wait(8 * (number + 1))
            assert {answer.status for answer in answers} == {202}
        unrouted = await running.metric("events_unrouted_total")

    assert unrouted == 0


async def test_a_broker_that_its_sender_knows_sooner_takes_the_event(tmp_path: Path) -> None:
    async with subscriber() as tool, running_broker(tmp_path) as running:
        before = await running.send(event(), to="default/new")
        running.write(broker("new"), trigger("t", tool.url, broker="new"))
        after = await running.send(event(), to="default/new")
        await tool.wait()

    assert (before.status, after.status) == (404, 202)


async def test_triggers_added_changed_and_removed_while_running_take_effect(tmp_path: Path) -> None:
    async with subscriber() as old, subscriber() as new, running_broker(tmp_path, broker()) as running:
        running.write(broker(), trigger("t", old.url))
        await eventually(lambda: _ready(running, "t"))
        await running.send(event("first"))
        await old.wait()

        running.write(broker(), trigger("t", new.url))
        await eventually(lambda: _subscriber_is(running, "t", new.url))
        await running.send(event("second"))
        await new.wait()

        running.write(broker())
        await eventually(lambda: _unknown(running, "t"))
        await running.send(event("third"))

    assert [each.id for each in old.events] == ["first"]
    assert [each.id for each in new.events] == ["second"]


async def test_a_queued_delivery_follows_its_trigger_to_a_new_subscriber(tmp_path: Path) -> None:
    async def fail(_: Request) -> web.Response:
        return web.Response(status=503)

    policy = delivery(500, backoffPolicy="linear")
    async with (
        subscriber(fail) as old,
        subscriber() as new,
        running_broker(tmp_path, trigger("t", old.url, delivery=policy)) as running,
    ):
        await running.send(event())
        await old.wait(2)
        running.write(trigger("t", new.url, delivery=policy))
        [request] = await new.wait()

    assert request.event.id == "e1"


async def test_what_was_accepted_for_a_trigger_is_delivered_although_it_was_removed(tmp_path: Path) -> None:
    held = Gate()
    async with (
        subscriber(held) as tool,
        running_broker(tmp_path, broker(), trigger("t", tool.url), concurrency=1) as running,
    ):
        for number in range(3):
            await running.send(event(f"e{number}"))
        await tool.wait(1)
        running.write(broker())
        await eventually(lambda: _unknown(running, "t"))
        held.open()
        await tool.wait(3)


async def test_a_broken_edit_leaves_everything_in_force_and_is_reported(tmp_path: Path) -> None:
    async with subscriber() as tool, running_broker(tmp_path, trigger("t", tool.url)) as running:
        (tmp_path / "all.json").write_text("kind: [broken", encoding="utf-8")
        await eventually(lambda: _unreadable(running))
        await running.send(event())
        await tool.wait()


async def test_an_invalid_edit_leaves_the_last_valid_version_in_force(tmp_path: Path) -> None:
    async with subscriber() as tool, running_broker(tmp_path, broker(), trigger("t", tool.url)) as running:
        running.write(broker(delivery={"retry": "many"}), trigger("t", tool.url, filters={"exact": {}}))
        await eventually(lambda: _noted(running, "t"))
        status = await running.status()
        await running.send(event())
        await tool.wait()

    for found in (status["triggers"][0], status["brokers"][0]):
        assert (found["ready"], found["reason"]) == (True, "InvalidSpec")
        assert "last valid version" in found["message"]


async def test_an_invalid_trigger_is_listed_with_every_mistake(tmp_path: Path) -> None:
    wrong = trigger("wrong", {}, broker="", delivery={"backoffDelay": "soon"})
    async with running_broker(tmp_path, broker(), wrong) as running:
        status = await running.trigger_status("wrong")

    assert (status["ready"], status["reason"]) == (False, "InvalidSpec")
    for field in ("spec.broker", "spec.subscriber", "spec.delivery.backoffDelay"):
        assert field in str(status["message"])


async def test_a_broker_that_was_never_valid_takes_no_events_and_its_triggers_say_so(tmp_path: Path) -> None:
    wrong = broker(delivery={"retry": "many"})
    async with running_broker(tmp_path, wrong, trigger("t", "http://127.0.0.1:1/")) as running:
        answer = await running.send(event())
        status = await running.status()

    assert answer.status == 404
    assert status["brokers"][0]["ready"] is False
    assert "spec.delivery.retry" in status["brokers"][0]["message"]
    assert status["triggers"][0]["reason"] == "BrokerNotReady"


async def test_of_an_object_in_two_folders_the_later_folder_counts(tmp_path: Path) -> None:
    users, generated = tmp_path / "users", tmp_path / "generated"
    users.mkdir()
    generated.mkdir()
    async with subscriber() as tool:
        write_manifests(users, service("tool", "http://127.0.0.1:1/"), file="z.json")
        write_manifests(generated, service("tool", tool.url), file="a.json")
        async with running_broker(users, trigger("t", REF), manifests=(users, generated)) as running:
            await running.send(event())
            await tool.wait()


async def test_files_in_hidden_folders_and_of_other_kinds_are_not_read(tmp_path: Path) -> None:
    hidden = tmp_path / "..2026_01_01"
    hidden.mkdir()
    write_manifests(hidden, trigger("hidden", "http://127.0.0.1:1/"))
    (tmp_path / "notes.txt").write_text("kind: [broken", encoding="utf-8")
    async with running_broker(tmp_path, broker()) as running:
        status = await running.status()

    assert status["triggers"] == []
    assert status["unreadable"] == []


async def test_changes_are_found_although_the_system_gives_no_notifications(tmp_path: Path) -> None:
    """A folder that vanishes between the settings and the watch is such a case."""
    late = tmp_path / "late"
    settings = Settings.model_validate({"manifests": (tmp_path,)}).model_copy(
        update={"manifests": (late,), "drain_seconds": 0.0}
    )
    running = Service(settings, listen("127.0.0.1", 0))
    task = asyncio.create_task(running.run())
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE)) as session:
        found = RunningBroker(running.url, late, session, running)
        assert await found.trigger_status("t") == {}
        late.mkdir()
        found.write(trigger("t", "http://127.0.0.1:1/"))
        await eventually(lambda: _ready(found, "t"))
        running.stop()
        await asyncio.wait_for(task, PATIENCE)


async def _ready(running: RunningBroker, name: str) -> bool:
    return (await running.trigger_status(name)).get("ready") is True


async def _subscriber_is(running: RunningBroker, name: str, url: str) -> bool:
    return (await running.trigger_status(name)).get("subscriber") == url


async def _unknown(running: RunningBroker, name: str) -> bool:
    return not await running.trigger_status(name)


async def _noted(running: RunningBroker, name: str) -> bool:
    return bool((await running.trigger_status(name)).get("reason"))


async def _unreadable(running: RunningBroker) -> bool:
    return bool((await running.status())["unreadable"])
