import asyncio
import json
import socket
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from beckon_broker.service import QueueLimits
from beckon_contract.cloudevents.events import from_http
from tests.broker.broker_process import RunningBroker, broker, delivery, event, running_broker, trigger
from tests.broker.subscribers import Gate, Request, event_response, subscriber
from tests.patience import eventually

RETRIED = [404, 408, 409, 429, 500, 502, 503, 504, 599]
FINAL = [300, 301, 302, 307, 400, 401, 403, 405, 410, 413, 422, 451]


async def test_a_subscriber_is_reported_that_a_reply_is_welcome_and_its_namespace(tmp_path: Path) -> None:
    async with (
        subscriber() as tool,
        running_broker(tmp_path, trigger("t", tool.url, namespace="team")) as running,
    ):
        await running.send(event(), to="team/default")

        [request] = await tool.wait()

    assert request.headers["prefer"] == "reply"
    assert request.headers["kn-namespace"] == "team"
    assert "knativebrokerttl" not in request.event.extensions


async def test_tracing_headers_travel_with_the_event_and_others_do_not(tmp_path: Path) -> None:
    async with subscriber() as tool, running_broker(tmp_path, trigger("t", tool.url)) as running:
        await running.send(
            event(),
            headers={
                "X-Request-Id": "r1",
                "X-B3-TraceId": "b3",
                "Knative-Foo": "k",
                "Authorization": "secret",
                "Cookie": "secret",
                "X-Other": "o",
            },
        )
        [request] = await tool.wait()

    assert request.headers["x-request-id"] == "r1"
    assert request.headers["x-b3-traceid"] == "b3"
    assert request.headers["knative-foo"] == "k"
    assert {"authorization", "cookie", "x-other"}.isdisjoint(request.headers)


async def test_these_statuses_are_tried_again_and_the_others_are_final(tmp_path: Path) -> None:
    """The subscriber answers the status that is the event's id."""

    async def answer(request: Request) -> web.Response:
        return web.Response(status=int(request.event.id), headers={"location": "http://127.0.0.1:1/"})

    async with (
        subscriber(answer) as tool,
        subscriber() as sink,
        running_broker(tmp_path, trigger("t", tool.url, delivery=delivery(2, sink.url))) as running,
    ):
        for status in (*RETRIED, *FINAL):
            await running.send(event(str(status)))
        letters = await sink.wait(len(RETRIED) + len(FINAL))

    attempts = Counter(int(each.id) for each in tool.events)
    assert attempts == {**dict.fromkeys(RETRIED, 3), **dict.fromkeys(FINAL, 1)}
    assert all(each.event.extensions["knativeerrorcode"] == each.event.id for each in letters)


async def test_an_event_that_succeeds_at_the_second_attempt_is_delivered(tmp_path: Path) -> None:
    async with (
        subscriber() as tool,
        running_broker(tmp_path, trigger("t", tool.url, delivery=delivery(retry=3))) as running,
    ):
        tool.script = [web.Response(status=500)]
        await running.send(event())
        await eventually(lambda: _delivered(running, 1))

    assert len(tool.requests) == 2


@pytest.mark.parametrize("retry", [0, 1, 4])
async def test_a_delivery_has_one_attempt_more_than_it_has_retries(tmp_path: Path, retry: int) -> None:
    async def answer(_: Request) -> web.Response:
        return web.Response(status=503)

    async with (
        subscriber(answer) as tool,
        subscriber() as sink,
        running_broker(tmp_path, trigger("t", tool.url, delivery=delivery(retry, sink.url))) as running,
    ):
        await running.send(event())
        await sink.wait()
        retries = await running.metric("retries_total", trigger="t")

    assert len(tool.requests) == retry + 1
    assert retries == retry


async def test_the_delivery_of_a_trigger_replaces_the_one_of_its_broker_whole(tmp_path: Path) -> None:
    async def fail(_: Request) -> web.Response:
        return web.Response(status=500)

    async with (
        subscriber(fail) as own,
        subscriber(fail) as inherited,
        subscriber() as sink,
        running_broker(
            tmp_path,
            broker(delivery=delivery(2, sink.url)),
            trigger("own", own.url, delivery={"retry": 1}),
            trigger("inherited", inherited.url),
        ) as running,
    ):
        await running.send(event())
        [letter] = await sink.wait()
        await eventually(lambda: _dropped(running, "no-dead-letter-sink"))

    assert (len(own.requests), len(inherited.requests)) == (2, 3)
    assert letter.event.extensions["knativeerrordest"] == inherited.url


async def test_a_broker_that_says_nothing_of_delivery_retries_as_knative_does(tmp_path: Path) -> None:
    async with subscriber() as tool, running_broker(tmp_path, trigger("t", tool.url)) as running:
        tool.script = [web.Response(status=500), web.Response(status=500)]
        await running.send(event())

        await tool.wait(3)


async def test_a_subscriber_that_is_not_there_yet_gets_the_event_later(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    manifest = trigger("t", f"http://127.0.0.1:{port}/", delivery=delivery(500, backoffPolicy="linear"))
    async with running_broker(tmp_path, manifest) as running:
        await running.send(event())
        await eventually(lambda: _retried(running, 2))
        async with subscriber(port=port) as tool:
            [request] = await tool.wait()

    assert request.event.id == "e1"


async def test_an_attempt_that_takes_too_long_is_given_up_and_made_again(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def answer(_: Request) -> web.Response:
        if len(tool.requests) == 1:
            await release.wait()
        return web.Response()

    async with (
        subscriber(answer) as tool,
        running_broker(tmp_path, trigger("t", tool.url, delivery=delivery(1, timeout="PT1S"))) as running,
    ):
        await running.send(event())
        await tool.wait(2)
        release.set()
        await eventually(lambda: _delivered(running, 1))


async def test_the_time_out_of_the_settings_holds_where_a_delivery_names_none(tmp_path: Path) -> None:
    held = Gate()
    async with (
        subscriber(held) as tool,
        subscriber() as sink,
        running_broker(
            tmp_path,
            trigger("t", tool.url, delivery=delivery(0, sink.url)),
            limits=QueueLimits(attempt_seconds=0.05),
        ) as running,
    ):
        await running.send(event())
        [letter] = await sink.wait()
        held.open()

    assert letter.event.extensions["knativeerrorcode"] == "500"


async def test_retry_after_is_waited_for_up_to_the_maximum_of_the_trigger(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    times: list[float] = []

    async def answer(_: Request) -> web.Response:
        times.append(loop.time())
        return web.Response(status=503, headers={"retry-after": "3600"})

    spec = delivery(1, retryAfterMax="PT0.3S")
    async with (
        subscriber(answer) as tool,
        running_broker(tmp_path, trigger("t", tool.url, delivery=spec)) as running,
    ):
        await running.send(event())
        await tool.wait(2)

    assert times[1] - times[0] >= 0.29


async def test_retry_after_is_ignored_where_the_trigger_sets_no_maximum(tmp_path: Path) -> None:
    async with (
        subscriber() as tool,
        running_broker(tmp_path, trigger("t", tool.url, delivery=delivery(1))) as running,
    ):
        tool.script = [web.Response(status=429, headers={"retry-after": "3600"})]
        await running.send(event())

        await tool.wait(2)


async def test_format_json_delivers_in_structured_mode(tmp_path: Path) -> None:
    async with (
        subscriber() as tool,
        running_broker(tmp_path, trigger("t", tool.url, delivery={"format": "json"})) as running,
    ):
        await running.send(event(data=b'{"a":1}'))
        [request] = await tool.wait()

    assert request.headers["content-type"].startswith("application/cloudevents+json")
    assert from_http([(b"content-type", b"application/cloudevents+json")], request.body).data == b'{"a":1}'


async def test_every_trigger_that_passes_an_event_gets_it(tmp_path: Path) -> None:
    async with (
        subscriber() as one,
        subscriber() as two,
        running_broker(tmp_path, trigger("a", one.url), trigger("b", two.url)) as running,
    ):
        await running.send(event())
        await one.wait()
        await two.wait()
        await eventually(lambda: _delivered(running, 2))


async def test_the_metrics_have_the_age_of_the_oldest_open_delivery(tmp_path: Path) -> None:
    held = Gate()
    async with subscriber(held) as tool, running_broker(tmp_path, trigger("t", tool.url)) as running:
        before = await running.metric("oldest_delivery_seconds")
        await running.send(event("a"))
        await tool.wait()
        first = await running.metric("oldest_delivery_seconds")
        await running.send(event("b"))
        second = await running.metric("oldest_delivery_seconds")
        held.open()
        await eventually(lambda: _delivered(running, 2))
        await eventually(lambda: _has_none_open(running))

    assert before == 0
    assert 0 < first < second


async def _has_none_open(running: RunningBroker) -> bool:
    return await running.metric("oldest_delivery_seconds") == 0


async def test_triggers_with_one_subscriber_each_deliver_to_it(tmp_path: Path) -> None:
    async with (
        subscriber() as tool,
        running_broker(tmp_path, trigger("a", tool.url), trigger("b", tool.url)) as running,
    ):
        await running.send(event())
        await eventually(lambda: _delivered(running, 2))

    assert [each.id for each in tool.events] == ["e1", "e1"]


async def test_an_event_that_is_sent_twice_is_accepted_twice(tmp_path: Path) -> None:
    async with subscriber() as tool, running_broker(tmp_path, trigger("t", tool.url)) as running:
        answers = [(await running.send(event())).status for _ in range(2)]
        await eventually(lambda: _delivered(running, 2))

    assert answers == [202, 202]
    assert [each.id for each in tool.events] == ["e1", "e1"]


@pytest.mark.parametrize("structured", [False, True], ids=["binary", "structured"])
async def test_an_event_of_version_0_3_stays_one(tmp_path: Path, structured: bool) -> None:
    sent = replace(event(data=b"\xff\x00", schemaurl="http://example.com/s"), specversion="0.3")
    binary = replace(sent, datacontenttype="application/octet-stream")
    old = {"cesql": "specversion = '0.3'"}
    async with (
        subscriber() as tool,
        subscriber() as whole,
        running_broker(
            tmp_path,
            trigger("t", tool.url, filters=[old]),
            trigger("json", whole.url, delivery={"format": "json"}),
        ) as running,
    ):
        answer = await running.send(binary, structured=structured)
        [request] = await tool.wait()
        [document] = await whole.wait()

    assert answer.status == 202
    assert request.headers["ce-specversion"] == "0.3"
    assert request.headers["ce-schemaurl"] == "http://example.com/s"
    assert "ce-datacontentencoding" not in request.headers
    assert request.body == b"\xff\x00"
    found = json.loads(document.body)
    assert (found["specversion"], found["datacontentencoding"], found["data"]) == ("0.3", "base64", "/wA=")


async def test_the_trace_of_a_call_goes_on_in_the_delivery_of_its_reply(tmp_path: Path) -> None:
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    reply = event_response(event("r1", "test.answer"))

    async def answer(_: Request) -> web.Response:
        return reply

    async with (
        subscriber(answer) as tool,
        subscriber() as waiter,
        running_broker(
            tmp_path,
            trigger("call", tool.url, filter={"attributes": {"type": "test.call"}}),
            trigger("reply", waiter.url, filter={"attributes": {"type": "test.answer"}}),
        ) as running,
    ):
        await running.send(event(), headers={"traceparent": trace})
        [call] = await tool.wait()
        [received] = await waiter.wait()

    traces = {each.headers["traceparent"][3:35] for each in (call, received)}
    assert traces == {trace[3:35]}


async def _delivered(running: RunningBroker, count: int) -> bool:
    return await running.metric("deliveries_total") == count


async def _retried(running: RunningBroker, count: int) -> bool:
    return await running.metric("retries_total") >= count


async def _dropped(running: RunningBroker, reason: str) -> bool:
    return await running.metric("events_dropped_total", reason=reason) == 1


async def test_an_ordered_trigger_gets_one_event_after_the_other(tmp_path: Path) -> None:
    """The second waits for the retries of the first."""
    async with subscriber() as tool:
        tool.script += [web.Response(status=500), web.Response(status=500)]
        metadata = {"name": "t", "annotations": {"beckon.dev/delivery-order": "ordered"}}
        ordered = {**trigger("t", tool.url, delivery=delivery(5)), "metadata": metadata}
        async with running_broker(tmp_path, ordered) as running:
            for number in range(5):
                await running.send(event(f"e{number}"))
            await tool.wait(7)

    assert [each.id for each in tool.events] == ["e0", "e0", *(f"e{number}" for number in range(5))]
