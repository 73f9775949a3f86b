"""A call is not made again once its tool may have begun, unless its EventType or its Trigger allows it."""

from pathlib import Path

import pytest
from aiohttp import web

from tests.broker.broker_process import Manifest, broker, delivery, event, running_broker, trigger
from tests.broker.subscribers import subscriber

TOKEN = "shim-0.AAAAAAAAAAAAAAAA.BBBBBBBBBBBBBBBBBBBBBB"


async def attempts_at(
    tmp_path: Path, responses: list[web.Response], *, own: Manifest | None = None, **extensions: str
) -> int:
    """Return how often a tool with these answers gets an event that a Broker delivers up to four times."""
    async with subscriber() as tool, subscriber() as sink:
        options = {} if own is None else {"delivery": {**own, "deadLetterSink": {"uri": sink.url}}}
        async with running_broker(
            tmp_path,
            broker(delivery=delivery(3, sink.url)),
            trigger("tool", tool.url, filter={"attributes": {"type": "test.call"}}, **options),
            trigger("end", sink.url, filter={"attributes": {"type": "test.done"}}),
        ) as running:
            tool.script += responses
            await running.send(event("c1").extended(**extensions))
            ends = len([each for each in responses if each.status < 300])
            await (tool.wait(len(responses)) if ends else sink.wait())
            return len(tool.requests)


def failing(status: int, **headers: str) -> list[web.Response]:
    return [web.Response(status=status, headers=headers) for _ in range(4)]


@pytest.mark.parametrize("status", [500, 502, 408, 404, 409])
async def test_a_call_that_an_answer_ended_is_made_once(tmp_path: Path, status: int) -> None:
    made = await attempts_at(tmp_path, failing(status), correlationid=TOKEN)

    # 404 refuses the call before anything has begun, so it is made again.
    assert made == (4 if status == 404 else 1)


async def test_an_event_that_is_no_call_is_delivered_again(tmp_path: Path) -> None:
    assert await attempts_at(tmp_path, failing(500)) == 4


async def test_an_idempotent_call_is_made_again(tmp_path: Path) -> None:
    made = await attempts_at(tmp_path, failing(500), correlationid=TOKEN, beckonidempotent="true")

    assert made == 4


async def test_a_trigger_with_its_own_delivery_decides(tmp_path: Path) -> None:
    made = await attempts_at(tmp_path, failing(500), own=delivery(2), correlationid=TOKEN)

    assert made == 3


@pytest.mark.parametrize(("status", "headers"), [(429, {}), (503, {"Retry-After": "0"})])
async def test_a_tool_that_asks_for_the_call_again_gets_it(
    tmp_path: Path, status: int, headers: dict[str, str]
) -> None:
    answers = [*failing(status, **headers)[:2], web.Response(status=202)]

    assert await attempts_at(tmp_path, answers, correlationid=TOKEN) == 3


async def test_a_503_without_retry_after_ends_the_call(tmp_path: Path) -> None:
    assert await attempts_at(tmp_path, failing(503), correlationid=TOKEN) == 1


async def test_a_refused_connection_is_tried_again(tmp_path: Path, unused_tcp_port: int) -> None:
    async with (
        subscriber() as sink,
        running_broker(
            tmp_path,
            broker(delivery=delivery(2, sink.url)),
            trigger("tool", f"http://127.0.0.1:{unused_tcp_port}/"),
        ) as running,
    ):
        await running.send(event("c1", correlationid=TOKEN))
        [letter] = await sink.wait()
        retried = await running.metric("retries_total", trigger="tool")

    assert letter.event.extensions["beckonnotbegun"] == "true"
    assert retried == 2
