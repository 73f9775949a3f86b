import base64
import socket
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from beckon_broker.courier import dead_letter
from beckon_broker.envelope import BrokerName, Envelope
from beckon_broker.log import QueuedDelivery
from beckon_broker.sender import FailedAttempt
from beckon_contract.cloudevents.events import CloudEvent
from beckon_contract.knative.triggers import GROUP
from beckon_contract.kubernetes_objects import Key
from tests.broker.broker_process import RunningBroker, broker, delivery, event, running_broker, trigger
from tests.broker.subscribers import Request, event_response, subscriber
from tests.patience import eventually


def error_of(letter: Request) -> tuple[object, object, bytes]:
    extensions = letter.event.extensions
    data = base64.b64decode(str(extensions.get("knativeerrordata", "")))
    return extensions["knativeerrordest"], extensions["knativeerrorcode"], data


async def test_a_dead_letter_is_the_original_event_with_the_error(tmp_path: Path) -> None:
    sent = event(data=b'{"city":"Bern"}', correlationid="c1")

    async def refuse(_: Request) -> web.Response:
        return web.Response(status=422, body=b'{"title":"no such city"}')

    async with (
        subscriber(refuse) as tool,
        subscriber() as sink,
        running_broker(tmp_path, trigger("t", tool.url, delivery=delivery(3, sink.url))) as running,
    ):
        await running.send(sent)
        [letter] = await sink.wait()

    added = (
        "knativearrivaltime",
        "knativebrokerttl",
        "knativeerrordest",
        "knativeerrorcode",
        "knativeerrordata",
        "beckonnotbegun",
    )
    assert letter.event.without(*added) == sent
    assert error_of(letter) == (tool.url, "422", b'{"title":"no such city"}')
    assert letter.event.extensions["beckonnotbegun"] == "true"
    assert letter.headers["kn-namespace"] == "default"
    assert "prefer" not in letter.headers


async def test_the_error_data_of_any_body_fits_in_1024_characters(tmp_path: Path) -> None:
    sizes = (0, 1, 767, 768, 769, 1024, 20_000, 300_000)

    async def refuse(request: Request) -> web.Response:
        return web.Response(status=400, body=b"x" * int(request.event.id))

    async with (
        subscriber(refuse) as tool,
        subscriber() as sink,
        running_broker(tmp_path, trigger("t", tool.url, delivery=delivery(0, sink.url))) as running,
    ):
        for size in sizes:
            await running.send(event(str(size)))
        letters = await sink.wait(len(sizes))

    assert {each.event.id: error_of(each)[2] for each in letters} == {
        str(size): b"x" * min(size, 768) for size in sizes
    }
    assert all(len(str(each.event.extensions.get("knativeerrordata", ""))) <= 1024 for each in letters)


async def test_a_subscriber_that_cannot_be_reached_gives_code_500_and_the_cause(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    async with (
        subscriber() as sink,
        running_broker(tmp_path, trigger("t", url, delivery=delivery(1, sink.url))) as running,
    ):
        await running.send(event())
        [letter] = await sink.wait()

    destination, code, data = error_of(letter)
    assert (destination, code) == (url, "500")
    assert data.startswith(b"dispatch error: ")
    assert letter.event.extensions["beckonnotbegun"] == "true"


async def test_a_subscriber_that_may_have_begun_in_any_attempt_gives_a_letter_without_the_mark(
    tmp_path: Path,
) -> None:
    async def refuse(_: Request) -> web.Response:
        return web.Response(status=422)

    async with (
        subscriber(refuse) as tool,
        subscriber() as sink,
        running_broker(tmp_path, trigger("t", tool.url, delivery=delivery(3, sink.url))) as running,
    ):
        tool.script = [web.Response(status=404), web.Response(status=429)]
        await running.send(event(beckonnotbegun="true"))  # what the sender says is not passed on
        [letter] = await sink.wait()

    assert error_of(letter)[1] == "422"
    assert "beckonnotbegun" not in letter.event.extensions


async def test_a_dead_letter_is_retried_by_the_same_rules(tmp_path: Path) -> None:
    async def refuse(_: Request) -> web.Response:
        return web.Response(status=400)

    async with (
        subscriber(refuse) as tool,
        subscriber() as sink,
        running_broker(tmp_path, trigger("t", tool.url, delivery=delivery(2, sink.url))) as running,
    ):
        sink.script = [web.Response(status=503), web.Response(status=429)]
        await running.send(event())
        await sink.wait(3)

        async def dead_lettered() -> bool:
            return await running.metric("dead_letters_total", trigger="t") == 1

        await eventually(dead_lettered)

    assert len(tool.requests) == 1


async def test_what_a_dead_letter_sink_answers_is_no_reply(tmp_path: Path) -> None:
    async def refuse(_: Request) -> web.Response:
        return web.Response(status=400)

    async def reply(_: Request) -> web.Response:
        return event_response(event("r", "test.answer"))

    async with (
        subscriber(refuse) as tool,
        subscriber(reply) as sink,
        subscriber() as other,
        running_broker(
            tmp_path,
            trigger(
                "t", tool.url, filter={"attributes": {"type": "test.call"}}, delivery=delivery(0, sink.url)
            ),
            trigger("o", other.url, filter={"attributes": {"type": "test.answer"}}),
        ) as running,
    ):
        await running.send(event())
        await sink.wait()

        async def finished() -> bool:
            return await running.metric("queue_length") == 0

        await eventually(finished)
        accepted = await running.metric("events_accepted_total")

    assert accepted == 1
    assert not other.requests


@pytest.mark.parametrize(("answer", "attempts"), [(400, 1), (500, 3)])
async def test_a_letter_that_its_sink_refuses_is_dropped_and_counted(
    tmp_path: Path, answer: int, attempts: int
) -> None:
    async def refuse(_: Request) -> web.Response:
        return web.Response(status=answer)

    async with (
        subscriber(refuse) as both,
        running_broker(
            tmp_path, trigger("t", both.url + "tool", delivery=delivery(2, both.url + "sink"))
        ) as running,
    ):
        await running.send(event())
        await eventually(lambda: _dropped(running, "dead-letter-sink-failed"))

    assert len(both.requests) == attempts * 2


async def test_without_a_sink_an_undeliverable_event_is_dropped_and_counted(tmp_path: Path) -> None:
    async def refuse(_: Request) -> web.Response:
        return web.Response(status=400)

    async with (
        subscriber(refuse) as tool,
        running_broker(tmp_path, trigger("t", tool.url, delivery=delivery(2))) as running,
    ):
        await running.send(event())

        await eventually(lambda: _dropped(running, "no-dead-letter-sink"))


async def test_a_broker_that_is_its_own_dead_letter_sink_stops_when_the_ttl_is_used_up(
    tmp_path: Path,
) -> None:
    own = {"ref": {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "default"}}

    async def refuse(_: Request) -> web.Response:
        return web.Response(status=400)

    async with (
        subscriber(refuse) as tool,
        running_broker(
            tmp_path, broker(), trigger("t", tool.url, delivery={"deadLetterSink": own})
        ) as running,
    ):
        await running.send(event(knativebrokerttl="5"))
        await eventually(lambda: _dropped(running, "dead-letter-sink-failed"))

    assert len(tool.requests) == 4


@given(body=st.binary(max_size=3000), code=st.integers(100, 599))
def test_every_dead_letter_is_a_valid_event_with_bounded_error_data(body: bytes, code: int) -> None:
    earlier = CloudEvent("1", "/s", "t", b"d", extensions={"knativeerrordata": "b2xk", "knativeerrorcode": 1})
    envelope = Envelope(BrokerName("n", "b"), earlier, ttl=9)
    queued = QueuedDelivery(Key(GROUP, "Trigger", "n", "t"), envelope)

    letter = dead_letter(queued, "http://tool/", FailedAttempt(code, body, retriable=False))

    data = str(letter.extensions.get("knativeerrordata", ""))
    assert len(data) <= 1024
    assert base64.b64decode(data, validate=True) == body[:768]
    assert letter.extensions["knativeerrorcode"] == code
    assert letter.extensions["knativebrokerttl"] == 9
    assert letter.data == b"d"


async def _dropped(running: RunningBroker, reason: str) -> bool:
    return await running.metric("events_dropped_total", reason=reason) == 1
