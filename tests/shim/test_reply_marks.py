"""Replies of services that do not know `replyid`, and what is no reply though it bears the token."""

import asyncio
from typing import Any

import pytest

from tests.patience import until
from tests.shim.support import Posted, Server, Shim, reply_headers, serving, shim_in_front_of

OUTCOME = 'beckon_shim_replies_total{{outcome="{}"}}'


async def start_call(shim: Shim, broker: Server, **headers: Any) -> "asyncio.Task[tuple[int, bytes]]":
    """Start a call and return when its event is at the Broker."""
    before = len(broker.posts)

    async def call() -> tuple[int, bytes]:
        status, _, body = await shim.call(**headers)
        return status, body

    task = asyncio.create_task(call())
    await until(lambda: len(broker.posts) > before)
    return task


async def deliver(shim: Shim, data: bytes = b"1", path: str = "/replies", **attributes: Any) -> int:
    """Deliver an event without `replyid` to the shim, as a Broker would."""
    headers = {**reply_headers(""), **{f"ce-{name}": value for name, value in attributes.items()}}
    del headers["ce-replyid"]
    return (await shim.post(shim.replies + path, headers, data))[0]


async def test_a_reply_with_the_calls_own_correlation_answers_it(shim: Shim, broker: Server) -> None:
    call = await start_call(shim, broker)
    assert await deliver(shim, b"7", correlationid=broker.posts[0].token) == 202
    assert await call == (200, b"7")
    assert await shim.metric(OUTCOME.format("answered")) == 1


async def test_the_caller_gets_no_token_of_such_a_reply(shim: Shim, broker: Server) -> None:
    async def answer(posted: Posted) -> None:
        await deliver(shim, correlationid=posted.token, responseid=posted.token)

    broker.behaviour = answer
    _, headers, _ = await shim.call(beckon_reply_attribute="responseid")
    assert not {"ce-correlationid", "ce-responseid"} & set(headers)


async def test_the_call_itself_is_never_its_own_reply(shim: Shim, broker: Server) -> None:
    call = await start_call(shim, broker)
    posted = broker.posts[0]
    headers = {name: value for name, value in posted.headers.items() if name.lower().startswith("ce-")}
    headers["content-type"] = "application/json"
    for changed in ({}, {"ce-id": "other"}, {"ce-source": "/other"}):
        assert (await shim.post(shim.replies + "/replies", {**headers, **changed}, b"9"))[0] == 202
    assert not call.done()
    assert await shim.metric(OUTCOME.format("no_reply")) == 3
    await shim.reply(posted.token)
    assert (await call)[0] == 200


@pytest.mark.parametrize("extension", [{"beckonstate": "progress"}, {}])
async def test_a_report_of_progress_is_no_reply(
    shim: Shim, broker: Server, extension: dict[str, Any]
) -> None:
    call = await start_call(shim, broker)
    token = broker.posts[0].token
    await deliver(shim, beckonprogress=token, **extension)
    if extension:
        await deliver(shim, correlationid=token, **extension)
    assert not call.done()
    await shim.reply(token)
    assert (await call)[0] == 200


async def test_a_token_in_any_other_attribute_is_no_reply_unless_the_event_type_names_it(
    shim: Shim, broker: Server
) -> None:
    plain = await start_call(shim, broker)
    await deliver(shim, responseid=broker.posts[0].token)
    assert not plain.done()
    named = await start_call(shim, broker, beckon_reply_attribute="responseid")
    await deliver(shim, b"2", responseid=broker.posts[1].token)
    assert await named == (200, b"2")
    await shim.reply(broker.posts[0].token)
    await plain


async def test_where_an_attribute_is_named_a_copied_correlation_is_no_reply(
    shim: Shim, broker: Server
) -> None:
    call = await start_call(shim, broker, beckon_reply_attribute="replyid")
    await deliver(shim, correlationid=broker.posts[0].token)
    assert not call.done()
    await shim.reply(broker.posts[0].token, b"3")
    assert await call == (200, b"3")


async def test_a_named_attribute_may_hold_the_id_of_the_call(shim: Shim, broker: Server) -> None:
    named = {"beckon_reply_attribute": "responseid"}
    first = await start_call(shim, broker, ce_id="a", **named)
    second = await start_call(shim, broker, ce_id="b", **named)
    await deliver(shim, b"B", responseid="b", correlationid=broker.posts[1].token)
    await deliver(shim, b"A", responseid="a")
    assert (await first, await second) == ((200, b"A"), (200, b"B"))
    await deliver(shim, responseid="a")  # nothing waits for it any more, and it proves nothing
    assert await shim.metric(OUTCOME.format("unmarked")) == 1


async def test_what_the_caller_wrote_into_the_named_attribute_does_not_reach_the_broker(
    shim: Shim, echoing: Server
) -> None:
    await shim.call(beckon_reply_attribute="responseid", ce_responseid="call-1")
    assert "ce-responseid" not in echoing.posts[0].headers


@pytest.mark.parametrize("name", ["", "subject", "Responseid", "a b", "x" * 21, "1a"])
async def test_a_name_that_no_attribute_can_have_is_refused(shim: Shim, broker: Server, name: str) -> None:
    status, _, body = await shim.call(beckon_reply_attribute=name)
    assert (status, b"beckon-reply-attribute" in body) == (400, True)
    assert broker.posts == []


async def test_a_copied_correlation_reaches_the_replica_that_waits(broker: Server) -> None:
    async with (
        shim_in_front_of(broker.url, replica="shim-1") as waiting,
        shim_in_front_of(broker.url, replica="shim-0", peers=f"shim-1={waiting.replies}") as other,
    ):
        call = await start_call(waiting, broker)
        assert await deliver(other, b"there", correlationid=broker.posts[0].token) == 202
        assert await call == (200, b"there")


async def test_a_late_reply_with_a_copied_correlation_has_the_mark_that_the_sink_reads(
    broker: Server,
) -> None:
    async with serving() as sink, shim_in_front_of(broker.url, late_reply_sink=sink.url) as shim:
        call = await start_call(shim, broker)
        call.cancel()
        await until(lambda: len(shim.service.waiters) == 0)
        token = broker.posts[0].token
        assert await deliver(shim, id="call-1", correlationid=token) == 202  # the id is that of the call
        assert await deliver(shim, b"late", correlationid=token) == 202
        (posted,) = sink.posts
        assert (posted.headers["ce-replyid"], posted.body) == (token, b"late")
        assert posted.headers["ce-causationid"] == "call-1"


async def test_a_reply_too_large_is_shown_to_the_caller_however_it_names_the_call(broker: Server) -> None:
    async with shim_in_front_of(broker.url, max_event_bytes=65_536) as shim:
        call = await start_call(shim, broker)
        assert await deliver(shim, b"x" * 70_000, correlationid=broker.posts[0].token) == 413
        assert (await call)[0] == 502


async def test_a_dead_letter_of_another_event_with_the_token_does_not_end_the_call(
    shim: Shim, broker: Server
) -> None:
    call = await start_call(shim, broker)
    letter: dict[str, Any] = {"knativeerrordest": "http://audit", "knativeerrorcode": "500"}
    token = broker.posts[0].token
    assert await deliver(shim, path="/dead-letters", type="audited", correlationid=token, **letter) == 202
    assert not call.done()
    await shim.reply(token)
    assert (await call)[0] == 200


async def test_the_text_of_a_time_out_names_a_missing_token(shim: Shim, broker: Server) -> None:
    _, _, body = await shim.call(prefer="wait=1")
    assert b"without the token of the call" in body
