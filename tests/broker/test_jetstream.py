"""What only the log in JetStream promises: stored events outlive the broker and the server."""

from base64 import b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import web

from beckon_operator.webhook.certificates import new_authority, new_serving
from tests.broker.broker_process import (
    RunningBroker,
    broker,
    delivery,
    event,
    running_broker,
    trigger,
    write_manifests,
)
from tests.broker.subscribers import Gate, Request, Subscriber, subscriber
from tests.broker.test_process import broker_process, get, post, wait_until_listening
from tests.nats_server import NatsServer
from tests.patience import eventually

TOKEN = "shim-0.AAAAAAAAAAAAAAAA.BBBBBBBBBBBBBBBBBBBBBB"


def stored_in(server: NatsServer, stream: str | None = None) -> dict[str, Any]:
    """Return the settings of a broker with its log in a server, in streams of its own unless named."""
    return {"nats_url": server.url, "nats_stream": stream or uuid4().hex[:16], "lease_seconds": 1.0}


def environment(server: NatsServer, stream: str) -> dict[str, str]:
    """Return the same for a process, with a lease of a second."""
    return {
        "BECKON_NATS_URL": server.url,
        "BECKON_NATS_STREAM": stream,
        "BECKON_PORT": "0",
        "BECKON_BROKER_LEASE_SECONDS": "1",
    }


async def test_what_a_killed_broker_had_not_delivered_another_one_delivers(
    folder: Path, nats_server: NatsServer
) -> None:
    stream, held = uuid4().hex[:16], Gate()
    async with subscriber(held) as tool:
        write_manifests(folder, trigger("t", tool.url))
        async with broker_process(folder, **environment(nats_server, stream)) as first:
            url = await wait_until_listening(first)
            await _wait_until_ready(url)
            for number in range(20):
                assert await post(url, f"e{number}") == 202
            await tool.wait(20)
            first.kill()
        held.open()
        async with running_broker(folder, trigger("t", tool.url), **stored_in(nats_server, stream)) as second:
            await tool.wait(40)
            redelivered = await second.metric("redeliveries_total")

    assert {each.id for each in tool.events[20:]} == {f"e{number}" for number in range(20)}
    assert redelivered == 20


async def test_accepted_events_outlive_a_kill_of_the_server(folder: Path, own_server: NatsServer) -> None:
    async with (
        subscriber() as tool,
        running_broker(folder, trigger("t", tool.url), **stored_in(own_server)) as running,
    ):
        tool.script += [web.Response(status=503, headers={"Retry-After": "0"}) for _ in range(10)]
        statuses = [(await running.send(event(f"e{number}"))).status for number in range(10)]
        own_server.kill()
        refused = await running.send(event("refused"))
        own_server.start()
        await running.wait_until_ready()
        accepted = await running.send(event("later"))
        await eventually(lambda: _has_ids(tool, {f"e{number}" for number in range(10)} | {"later"}))

    assert statuses == [202] * 10
    assert (refused.status, accepted.status) == (503, 202)
    assert int(refused.headers["retry-after"]) >= 1
    assert str(own_server.port) in refused.json()["detail"]


async def test_without_a_server_events_are_refused_until_there_is_one(
    folder: Path, own_server: NatsServer
) -> None:
    own_server.kill()
    secret = own_server.url.replace("//", "//beckon:a-password@")
    async with (
        subscriber() as tool,
        running_broker(
            folder, trigger("t", tool.url), wait=False, nats_url=secret, nats_stream="s"
        ) as running,
    ):
        await eventually(lambda: _says(running, "cannot be used"))
        readiness = await running.request("GET", "/readyz")
        refused = await running.send(event("e1"))
        health = await running.request("GET", "/healthz")
        own_server.start()
        await running.wait_until_ready()
        accepted = await running.send(event("e2"))
        await tool.wait()

    assert (readiness.status, refused.status, health.status, accepted.status) == (503, 503, 200, 202)
    assert f"127.0.0.1:{own_server.port}" in refused.json()["detail"]
    assert "a-password" not in refused.body.decode() + readiness.body.decode()
    assert [each.id for each in tool.events] == ["e2"]


async def test_brokers_share_the_deliveries_of_a_trigger(folder: Path, nats_server: NatsServer) -> None:
    stream = uuid4().hex[:16]
    async with subscriber() as tool:
        manifest, settings = trigger("t", tool.url), stored_in(nats_server, stream)
        async with (
            running_broker(folder, manifest, **settings) as one,
            running_broker(folder, manifest, **settings) as two,
        ):
            for number in range(40):
                await (one, two)[number % 2].send(event(f"e{number}"))
            await tool.wait(40)
            await eventually(lambda: is_empty(one))
            delivered = [await each.metric("deliveries_total") for each in (one, two)]

    assert sorted(each.id for each in tool.events) == sorted(f"e{number}" for number in range(40))
    assert sum(delivered) == 40


async def test_a_stopped_broker_gives_back_what_it_holds(folder: Path, nats_server: NatsServer) -> None:
    """The next one gets it at once, not after the lease, and with the attempts made so far."""
    stream = uuid4().hex[:16]

    async def answer(_: Request) -> web.Response:
        return web.Response(status=500)

    async with subscriber(answer) as tool, subscriber() as sink:
        waiting = delivery(1, sink.url, backoffDelay="PT1H")
        settings = stored_in(nats_server, stream)
        async with running_broker(folder, trigger("t", tool.url, delivery=waiting), **settings) as first:
            await first.send(event("e1"))
            await tool.wait()
        last = delivery(0, sink.url)
        async with running_broker(folder, trigger("t", tool.url, delivery=last), **settings):
            await tool.wait(2)
            [letter] = await sink.wait()

    assert letter.event.id == "e1"
    assert len(tool.requests) == 2


@pytest.mark.parametrize(("extensions", "runs"), [({}, 1), ({"beckonidempotent": "true"}, 2)])
async def test_a_call_that_a_killed_broker_held_is_repeated_only_if_it_may_be(
    folder: Path, nats_server: NatsServer, extensions: dict[str, str], runs: int
) -> None:
    stream = uuid4().hex[:16]
    settings = environment(nats_server, stream)
    held = Gate()
    async with subscriber(held) as tool, subscriber() as sink:
        manifests = broker(delivery=delivery(3, sink.url)), trigger("t", tool.url)
        write_manifests(folder, *manifests)
        async with broker_process(folder, **settings) as first:
            await _wait_until_ready(url := await wait_until_listening(first))
            await post(url, "call", correlationid=TOKEN, **extensions)
            await tool.wait()
            first.kill()
        held.open()
        async with running_broker(folder, *manifests, **stored_in(nats_server, stream)) as second:
            await (tool.wait(2) if runs == 2 else sink.wait())
            await eventually(lambda: is_empty(second))

    assert len(tool.requests) == runs
    if runs == 1:
        [letter] = sink.events
        assert letter.extensions["knativeerrorcode"] == "500"
        # By these words the shim knows that the code is no answer of the tool's: the outcome is unknown.
        assert b64decode(str(letter.extensions["knativeerrordata"])).startswith(b"dispatch error: ")
        assert "beckonnotbegun" not in letter.extensions


async def test_a_full_log_refuses_events_and_keeps_those_it_has(
    folder: Path, nats_server: NatsServer
) -> None:
    held = Gate()
    settings = {**stored_in(nats_server), "nats_max_bytes": 400_000}
    async with (
        subscriber(held) as tool,
        running_broker(folder, trigger("t", tool.url), **settings) as running,
    ):
        answers = [await running.send(event(f"e{n}", data=b"x" * 20_000)) for n in range(10)]
        accepted = {f"e{n}" for n, answer in enumerate(answers) if answer.status == 202}
        refused = [answer for answer in answers if answer.status != 202]
        held.open()
        await eventually(lambda: _has_ids(tool, accepted))

    assert accepted
    assert {answer.status for answer in refused} == {503}
    assert all("maximum bytes" in answer.json()["detail"] for answer in refused)


async def test_an_event_larger_than_a_message_of_the_server_is_refused_for_good(
    folder: Path, tmp_path: Path
) -> None:
    """The server would close the connection of a client that sends it."""
    (tmp_path / "nats.conf").write_text("max_payload: 100000")
    server = NatsServer(tmp_path / "nats", "--config", str(tmp_path / "nats.conf")).start()
    async with (
        subscriber() as tool,
        running_broker(folder, trigger("t", tool.url), **stored_in(server)) as running,
    ):
        sizes = (90_000, *range(98_500, 100_200, 100), 200_000)
        answers = [await running.send(event(f"e{size}", data=b"x" * size)) for size in sizes]
        accepted = {f"e{size}" for size, answer in zip(sizes, answers, strict=True) if answer.status == 202}
        await eventually(lambda: _has_ids(tool, accepted))
        status = await running.status()
    server.stop()

    assert (answers[0].status, answers[-1].status) == (202, 413)
    assert {answer.status for answer in answers} == {202, 413}
    assert "max_payload" in answers[-1].json()["detail"]
    assert status["queue"]["problem"] == ""
    assert "maximum payload" not in server.log.lower()


async def test_a_server_over_tls_is_checked_against_the_ca_of_the_settings(
    folder: Path, tmp_path: Path
) -> None:
    now, life = datetime.now(UTC), timedelta(days=1)
    authority, other = new_authority(life, now), new_authority(life, now)
    serving = new_serving(authority, ["127.0.0.1"], life, now)
    files = {"cert": serving.certificate_pem, "key": serving.key_pem}
    files |= {"ca": authority.certificate_pem, "other": other.certificate_pem}
    for name, content in files.items():
        (tmp_path / f"{name}.pem").write_bytes(content)
    options = ("--tls", "--tlscert", str(tmp_path / "cert.pem"), "--tlskey", str(tmp_path / "key.pem"))
    server = NatsServer(tmp_path / "nats", *options).start()
    settings = {**stored_in(server), "nats_url": server.url.replace("nats:", "tls:")}
    async with subscriber() as tool:
        route = trigger("t", tool.url)
        async with running_broker(
            folder, route, wait=False, nats_ca=tmp_path / "other.pem", **settings
        ) as running:
            await eventually(lambda: _says(running, "certificate verify failed"))
        async with running_broker(folder, route, nats_ca=tmp_path / "ca.pem", **settings) as running:
            assert (await running.send(event("e1"))).status == 202
            await tool.wait()
    server.stop()


async def test_a_slow_trigger_leaves_the_others_alone(folder: Path, nats_server: NatsServer) -> None:
    held = Gate()
    async with subscriber(held) as slow, subscriber() as quick:
        manifests = [
            trigger("slow", slow.url, filter={"attributes": {"type": "test.slow"}}),
            trigger("quick", quick.url, filter={"attributes": {"type": "test.quick"}}),
        ]
        settings = {**stored_in(nats_server), "concurrency": 1}
        async with running_broker(folder, *manifests, **settings) as running:
            for number in range(300):
                await running.send(event(f"s{number}", "test.slow"))
            await running.send(event("q", "test.quick"))
            await quick.wait()
            await eventually(lambda: _has_queued(running, "slow", 300))
            held.open()
            await eventually(lambda: is_empty(running))

    assert len(slow.requests) == 300


async def test_one_process_accepts_and_another_one_delivers(folder: Path, nats_server: NatsServer) -> None:
    settings = stored_in(nats_server, uuid4().hex[:16])
    async with subscriber() as tool:
        route = trigger("t", tool.url)
        async with running_broker(folder, route, roles="ingress", **settings) as ingress:
            assert (await ingress.send(event("e1"))).status == 202
            assert (await ingress.trigger_status("t"))["queued"] == 1
            assert not tool.requests
            async with running_broker(folder, route, roles="dispatcher", **settings) as dispatcher:
                await tool.wait()
                refused = await dispatcher.send(event("e2"))

    assert refused.status == 404
    assert [each.id for each in tool.events] == ["e1"]


async def test_a_call_at_work_in_a_stopped_broker_is_not_made_again(
    folder: Path, nats_server: NatsServer
) -> None:
    """Its tool may have begun, although no answer has come; an idempotent one gets it again."""
    settings = stored_in(nats_server, uuid4().hex[:16])
    held = Gate()
    async with subscriber(held) as tool, subscriber() as sink:
        manifests = broker(delivery=delivery(3, sink.url)), trigger("t", tool.url)
        async with running_broker(folder, *manifests, **settings) as first:
            await first.send(event("once").extended(correlationid=TOKEN))
            await first.send(event("again").extended(correlationid=TOKEN, beckonidempotent="true"))
            await tool.wait(2)
        held.open()
        async with running_broker(folder, *manifests, **settings) as second:
            await tool.wait(3)
            [letter] = await sink.wait()
            await eventually(lambda: is_empty(second))

    assert letter.event.id == "once"
    assert sorted(each.id for each in tool.events) == ["again", "again", "once"]


async def _wait_until_ready(url: str) -> None:
    async def is_ready() -> bool:
        return await get(f"{url}/readyz") == 200

    await eventually(is_ready)


async def _has_ids(found: Subscriber, wanted: set[str]) -> bool:
    return wanted <= {each.id for each in found.events}


async def _says(running: RunningBroker, text: str) -> bool:
    return text in (await running.request("GET", "/readyz")).body.decode()


async def is_empty(running: RunningBroker) -> bool:
    return not await running.metric("queue_length")


async def test_the_queue_of_a_slow_trigger_is_in_the_log_and_not_in_the_process(
    folder: Path, nats_server: NatsServer
) -> None:
    """It takes no room from the others, however long it is, and loses nothing."""
    held = Gate()
    async with subscriber(held) as tool, subscriber() as quick:
        routes = [
            trigger("slow", tool.url, filter={"attributes": {"type": "test.slow"}}),
            trigger("quick", quick.url, filter={"attributes": {"type": "test.quick"}}),
        ]
        settings = {**stored_in(nats_server), "concurrency": 2}
        async with running_broker(folder, *routes, **settings) as running:
            for number in range(200):
                await running.send(event(f"s{number}", "test.slow"))
            await eventually(lambda: _holds_at_most(running, 10))
            await running.send(event("q", "test.quick"))
            await quick.wait()
            await eventually(lambda: _has_queued(running, "slow", 200))
            held.open()
            await eventually(lambda: is_empty(running))

    assert sorted(each.id for each in tool.events) == sorted(f"s{number}" for number in range(200))


async def test_an_ordered_trigger_gets_one_event_after_the_other(
    folder: Path, nats_server: NatsServer
) -> None:
    """The second waits for the retries of the first, and a second broker changes nothing."""
    stream = uuid4().hex[:16]
    async with subscriber() as tool:
        metadata = {"name": "t", "annotations": {"beckon.dev/delivery-order": "ordered"}}
        ordered = {**trigger("t", tool.url, delivery=delivery(5)), "metadata": metadata}
        settings = stored_in(nats_server, stream)
        async with (
            running_broker(folder, ordered, **settings) as one,
            running_broker(folder, ordered, **settings) as two,
        ):
            tool.script += [web.Response(status=500), web.Response(status=500)]
            for number in range(20):
                await (one, two)[number % 2].send(event(f"e{number}"))
            await tool.wait(22)

    assert [each.id for each in tool.events] == ["e0", "e0", *(f"e{number}" for number in range(20))]


async def _holds_at_most(running: RunningBroker, count: int) -> bool:
    queue = (await running.status())["queue"]
    return 0 < int(queue["held"]) <= count


async def _has_queued(running: RunningBroker, name: str, count: int) -> bool:
    """Return True once so many deliveries are queued; one that moves to the own queue is there twice."""
    return bool((await running.trigger_status(name))["queued"] == count)
