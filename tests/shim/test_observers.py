"""A Trigger that only observes the calls of a tool: its failure does not end them."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from tests.broker.broker_process import Manifest, broker, delivery, event, running_broker, trigger
from tests.broker.subscribers import Gate, Request, event_response, subscriber
from tests.patience import eventually
from tests.shim.support import shim_in_front_of

TYPE = "weather.forecast"
TOKEN = "shim-0.AAAAAAAAAAAAAAAA.BBBBBBBBBBBBBBBBBBBBBB"
OF_TYPE = {"attributes": {"type": TYPE}}


async def refuse(_: Request) -> web.Response:
    return web.Response(status=400)


async def test_a_call_goes_on_when_its_observer_fails(tmp_path: Path) -> None:
    gate = Gate()

    async def answer(request: Request) -> web.Response:
        await gate(request)
        return event_response(event("r", "weather.reply"))

    async with (
        subscriber(answer) as tool,
        subscriber(refuse) as audit,
        running_broker(tmp_path) as running,
        shim_in_front_of(running.url) as shim,
    ):
        running.write(
            broker(delivery=delivery(0, f"{shim.replies}/dead-letters")),
            trigger("audit", audit.url),
            trigger("replies", f"{shim.replies}/replies", filter={"attributes": {"replyid": ""}}),
            trigger("tool", tool.url, filter=OF_TYPE),
        )
        await eventually(lambda: running.trigger_status("tool"))
        call = asyncio.create_task(shim.call("/default/default", ce_type=TYPE))
        line = 'beckon_shim_dead_letters_total{outcome="foreign"}'
        await eventually(lambda: shim.metric(line))
        gate.open()
        status, headers, _ = await call

    assert (status, headers["ce-type"]) == (200, "weather.reply")


@pytest.mark.parametrize(
    ("failing", "other", "marked"),
    [
        # The tool's own failure, and one of which the broker cannot know whose it is, end the call.
        (OF_TYPE, None, False),
        ({"attributes": {"source": "/test"}}, {"attributes": {"id": "c1"}}, False),
        (None, OF_TYPE, True),
    ],
)
async def test_the_dead_letter_of_an_observer_is_marked(
    tmp_path: Path, failing: Manifest | None, other: Manifest | None, marked: bool
) -> None:
    async with (
        subscriber() as well,
        subscriber(refuse) as bad,
        subscriber() as sink,
        running_broker(
            tmp_path,
            broker(),
            trigger("a-bad", bad.url, delivery=delivery(0, sink.url), **_filter(failing)),
            trigger("b-well", well.url, **_filter(other)),
        ) as running,
    ):
        # The mark of a sender is not passed on.
        call = event("c1", TYPE, correlationid=TOKEN, beckonobserver="true")
        await running.send(call)
        [letter] = await sink.wait()

    assert letter.event.extensions.get("beckonobserver") == ("true" if marked else None)
    assert letter.event.extensions["knativeerrorcode"] == "400"


def _filter(found: Manifest | None) -> Manifest:
    return {} if found is None else {"filter": found}
