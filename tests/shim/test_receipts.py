"""A reply to a caller that keeps its runs is acknowledged to the Broker once the caller has stored it."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import aiohttp
import pytest
from aiohttp import web

from beckon_agent.tool_calls.broker import ReplyKeys
from beckon_agent.tool_calls.caller import Dispatcher
from beckon_agent.tool_calls.recorded_events import recording_events
from tests.agent.tool_calls.test_broker import a_call
from tests.patience import PATIENCE, until
from tests.shim.support import CALL, KEY, Posted, Server, Shim, reply_headers, serving, shim_in_front_of
from tests.shim.test_progress import report

CONFIRMING = {**CALL, "beckon-receipt": "true", "prefer": "respond-async"}


class Delivery:
    """A call whose reply a Broker delivers: the answer that the caller got, and the delivery to the shim."""

    def __init__(self, answer: aiohttp.ClientResponse, delivered: "asyncio.Task[int]", token: str) -> None:
        self.status = answer.status
        self.receipt = answer.headers.get("beckon-receipt", "")
        self.delivered = delivered
        self.token = token


async def answered(
    shim: Shim, broker: Server, by: Shim | None = None, headers: Mapping[str, str] = CONFIRMING, **more: str
) -> Delivery:
    """Make a call and deliver its reply to a replica; return when the caller has its answer."""
    before = len(broker.posts)
    calling = asyncio.create_task(shim.client.post(shim.url + "/default/main", headers=headers, data=b"{}"))
    await until(lambda: len(broker.posts) > before)
    token = broker.posts[-1].token
    delivered = asyncio.create_task((by or shim).reply(token, b"the reply", **more))
    return Delivery(await calling, delivered, token)


async def confirm(shim: Shim, receipt: str) -> int:
    return (await shim.post(shim.url + receipt, {}))[0]


async def test_a_reply_is_acknowledged_when_its_caller_has_stored_it(broker: Server) -> None:
    async with serving() as sink, shim_in_front_of(broker.url, late_reply_sink=sink.url) as shim:
        delivery = await answered(shim, broker)
        assert delivery.status == 200
        await asyncio.sleep(0.2)
        assert not delivery.delivered.done()

        assert await confirm(shim, delivery.receipt) == 202

        assert await delivery.delivered == 202
        assert await confirm(shim, delivery.receipt) == 404  # it serves once
        assert await shim.reply(delivery.token, b"again") == 202
        assert await shim.metric('beckon_shim_replies_total{outcome="duplicate"}') == 1
        assert sink.posts == []


async def test_a_reply_that_its_caller_never_stored_goes_to_the_sink(broker: Server) -> None:
    async with serving() as sink, shim_in_front_of(broker.url, late_reply_sink=sink.url) as shim:
        delivery = await answered(shim, broker)

        assert await delivery.delivered == 202

        (late,) = sink.posts
        assert (late.body, late.headers["ce-causationid"]) == (b"the reply", "call-1")
        assert late.headers["ce-replyid"] == delivery.token  # by which the sink knows that it is genuine
        assert await confirm(shim, delivery.receipt) == 404
        assert await shim.metric('beckon_shim_replies_total{outcome="late"}') == 1


async def test_a_reply_that_no_one_stored_stays_with_the_broker(broker: Server) -> None:
    async with serving() as sink, shim_in_front_of(broker.url, late_reply_sink=sink.url) as shim:

        async def refuse(posted: Posted) -> web.Response:
            return web.Response(status=503)

        sink.behaviour = refuse
        delivery = await answered(shim, broker)
        assert await delivery.delivered == 503

        sink.behaviour = None
        assert await shim.reply(delivery.token, b"the reply") == 202
        assert [posted.body for posted in sink.posts] == [b"the reply"] * 2


async def test_a_reply_that_comes_twice_before_its_receipt_is_stored_by_the_sink(broker: Server) -> None:
    async with serving() as sink, shim_in_front_of(broker.url, late_reply_sink=sink.url) as shim:
        delivery = await answered(shim, broker)

        assert await shim.reply(delivery.token, b"the reply") == 202

        assert len(sink.posts) == 1
        assert await confirm(shim, delivery.receipt) == 202
        assert await delivery.delivered == 202


async def test_a_receipt_reaches_the_replica_that_waits_for_it(broker: Server) -> None:
    async with (
        serving() as sink,
        shim_in_front_of(broker.url, replica="a", late_reply_sink=sink.url) as first,
    ):
        async with shim_in_front_of(
            broker.url, replica="b", peers=f"a={first.replies}", late_reply_sink=sink.url
        ) as second:
            delivery = await answered(first, broker, by=second)

            assert await confirm(second, delivery.receipt) == 202

            assert await delivery.delivered == 202
            assert await confirm(second, "/receipts/gone/nonce") == 404
        assert sink.posts == []


async def test_that_a_tool_answers_later_is_acknowledged_when_its_caller_has_stored_it(
    broker: Server,
) -> None:
    async with serving() as sink, shim_in_front_of(broker.url, late_reply_sink=sink.url) as shim:
        delivery = await answered(shim, broker, ce_beckonstate="accepted")
        assert delivery.status == 202
        await asyncio.sleep(0.2)
        assert not delivery.delivered.done()

        assert await confirm(shim, delivery.receipt) == 202
        assert await delivery.delivered == 202

        assert await shim.reply(delivery.token, b"later") == 202
        assert [posted.body for posted in sink.posts] == [b"later"]


async def test_a_stream_of_reports_names_the_receipt_in_its_head(broker: Server) -> None:
    headers = {**CONFIRMING, "accept": "text/event-stream"}
    async with serving() as sink, shim_in_front_of(broker.url, late_reply_sink=sink.url) as shim:
        calling = asyncio.create_task(
            shim.client.post(shim.url + "/default/main", headers=headers, data=b"{}")
        )
        await until(lambda: bool(broker.posts))
        token = broker.posts[0].token
        assert await report(shim, token, 1) == 202
        async with await calling as answer:
            delivered = asyncio.create_task(shim.reply(token, b"true"))
            assert b"event: reply" in await answer.read()
            assert await confirm(shim, answer.headers["beckon-receipt"]) == 202
        assert await delivered == 202


@pytest.mark.parametrize(
    ("with_sink", "without"),
    [(True, "beckon-receipt"), (True, "prefer"), (False, "")],
    ids=["not wanted", "no late answers", "no sink"],
)
async def test_no_receipt_is_waited_for_where_none_can_come(
    broker: Server, with_sink: bool, without: str
) -> None:
    headers = {name: value for name, value in CONFIRMING.items() if name != without}
    sink = "http://127.0.0.1:9" if with_sink else None
    async with shim_in_front_of(broker.url, late_reply_sink=sink) as shim:
        delivery = await answered(shim, broker, headers=headers)

        assert await asyncio.wait_for(delivery.delivered, PATIENCE) == 202
        assert delivery.receipt == ""


async def test_a_receipt_needs_the_credential_of_a_caller(broker: Server) -> None:
    async with shim_in_front_of(broker.url, open_calls=False) as shim:
        status, headers, _ = await shim.post(shim.url + "/receipts/shim-0/nonce", {})
        assert (status, headers["www-authenticate"]) == (401, "Beckon")


async def test_other_methods_than_post_are_refused(shim: Shim) -> None:
    async with shim.client.get(shim.replies + "/receipts/shim-0/nonce", headers=reply_headers("x")) as answer:
        assert (answer.status, answer.headers["allow"]) == (405, "POST")


async def test_the_agent_confirms_a_reply_when_it_says_that_it_is_stored(broker: Server) -> None:
    call = replace(a_call(), may_be_late=True)
    async with (
        serving() as sink,
        shim_in_front_of(broker.url, late_reply_sink=sink.url, open_calls=False) as shim,
        aiohttp.ClientSession() as session,
    ):
        delivered: list[asyncio.Task[int]] = []

        async def reply(posted: Posted) -> None:
            delivered.append(asyncio.create_task(shim.reply(posted.token, b'"sunny"')))

        broker.behaviour = reply
        with recording_events() as noted:
            outcome = await Dispatcher(session, shim.url, keys=ReplyKeys(KEY)).send(call)
        assert (outcome.result, delivered[0].done()) == ("sunny", False)
        assert noted.confirm is not None

        noted.confirm()

        assert await delivered[0] == 202
        assert sink.posts == []
