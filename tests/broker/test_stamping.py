"""Any service that answers a call is its tool: the broker gives the answer the token of the call."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from beckon_contract.cloudevents.events import CloudEvent
from tests.broker.broker_process import RunningBroker, event, running_broker, trigger
from tests.broker.subscribers import Request, event_response, subscriber

TOKEN = "shim-0.AAAAAAAAAAAAAAAA.BBBBBBBBBBBBBBBBBBBBBB"
REPLIES = {"filter": {"attributes": {"replyid": ""}}}
CALLS = {"filter": {"attributes": {"type": "test.call"}}}


def reply(**extensions: str) -> CloudEvent:
    return CloudEvent("r1", "/tool", "test.reply", b"42", "application/json", extensions=extensions)


async def send_call(running: RunningBroker, **extensions: str) -> None:
    assert (await running.send(event("c1").extended(correlationid=TOKEN, **extensions))).status == 202


@pytest.mark.parametrize(("copied", "token"), [({}, TOKEN), ({"replyid": "its-own"}, "its-own")])
async def test_a_reply_without_a_token_gets_that_of_its_call_and_another_keeps_its_own(
    tmp_path: Path, copied: dict[str, str], token: str
) -> None:
    async def answer(_: Request) -> web.Response:
        return event_response(reply(**copied))

    async with (
        subscriber(answer) as tool,
        subscriber() as shim,
        running_broker(
            tmp_path, trigger("tool", tool.url, **CALLS), trigger("replies", shim.url, **REPLIES)
        ) as running,
    ):
        await send_call(running)
        [came] = await shim.wait()

    assert (came.event.id, came.event.data, came.event.extensions["replyid"]) == ("r1", b"42", token)


async def test_an_observer_of_calls_does_not_answer_them(tmp_path: Path) -> None:
    """Its Trigger passes every event; the tool's requires the type of the call."""

    async def observe(_: Request) -> web.Response:
        return event_response(CloudEvent("o1", "/observer", "test.observed"))

    async def answer(_: Request) -> web.Response:
        return event_response(reply())

    async with (
        subscriber(observe) as observer,
        subscriber(answer) as tool,
        subscriber() as shim,
        subscriber() as observed,
        running_broker(
            tmp_path,
            trigger("observer", observer.url, filters=[{"prefix": {"type": "test.c"}}]),
            trigger("tool", tool.url, **CALLS),
            trigger("replies", shim.url, **REPLIES),
            trigger("observed", observed.url, filter={"attributes": {"type": "test.observed"}}),
        ) as running,
    ):
        await send_call(running)
        await shim.wait()
        [observation] = await observed.wait()

    assert [each.id for each in shim.events] == ["r1"]
    assert "replyid" not in observation.event.extensions


@pytest.mark.parametrize(
    ("response", "data", "content_type"),
    [
        ({"body": b'{"sum": 5}', "content_type": "application/json"}, b'{"sum": 5}', "application/json"),
        ({"text": "five"}, b"five", "text/plain; charset=utf-8"),
        ({"status": 204}, None, None),
        ({"status": 202}, None, None),
    ],
    ids=["JSON", "text", "204", "202"],
)
async def test_an_answer_that_is_no_event_is_a_reply_where_the_call_says_so(
    tmp_path: Path, response: dict[str, Any], data: bytes | None, content_type: str | None
) -> None:
    async with (
        subscriber() as tool,
        subscriber() as shim,
        running_broker(
            tmp_path, trigger("tool", tool.url, **CALLS), trigger("replies", shim.url, **REPLIES)
        ) as running,
    ):
        tool.script.append(web.Response(**response))
        await send_call(running, beckonreply="any")
        [came] = await shim.wait()

    found = came.event
    assert (found.type, found.source) == ("test.call.reply", "/beckon/triggers/default/tool")
    assert (found.data, found.datacontenttype) == (data, content_type)
    assert found.extensions["replyid"] == TOKEN


async def test_an_answer_that_is_no_event_is_no_reply_without_it(tmp_path: Path) -> None:
    async with (
        subscriber() as tool,
        subscriber() as shim,
        subscriber() as sink,
        running_broker(
            tmp_path,
            trigger("tool", tool.url, delivery={"retry": 0, "deadLetterSink": {"uri": sink.url}}, **CALLS),
            trigger("replies", shim.url, **REPLIES),
        ) as running,
    ):
        tool.script.append(web.Response(text="five"))
        await send_call(running)
        [letter] = await sink.wait()

    assert letter.event.id == "c1"
    assert not shim.requests
