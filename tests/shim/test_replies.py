import asyncio
import base64
import json

import pytest
from aiohttp import web

from beckon_contract.correlation import Keyring, SigningKey
from tests.patience import until
from tests.shim.support import (
    Posted,
    Server,
    Shim,
    reply_headers,
    serving,
    shim_in_front_of,
    timed_out_call,
    waiting_call,
)


async def test_a_second_reply_is_ignored_and_counted(shim: Shim, broker: Server) -> None:
    call = await waiting_call(shim, broker)
    assert await shim.reply(broker.posts[0].token, b"1") == 202
    assert await shim.reply(broker.posts[0].token, b"2") == 202
    assert await call == (200, b"1")
    assert await shim.metric('beckon_shim_replies_total{outcome="duplicate"}') == 1


async def test_a_forged_token_wakes_no_one_and_is_acknowledged(shim: Shim, broker: Server) -> None:
    call = await waiting_call(shim, broker)
    token = broker.posts[0].token
    changed = token[:-1] + ("A" if token[-1] != "A" else "B")
    for forged in (changed, token.upper(), "nonsense", "shim-0..", token + "x"):
        assert await shim.reply(forged) == 202
    assert await shim.metric('beckon_shim_replies_total{outcome="foreign"}') == 5
    assert not call.done()
    await shim.reply(broker.posts[0].token)
    assert (await call)[0] == 200


async def test_a_token_of_another_key_wakes_no_one(broker: Server) -> None:
    async with shim_in_front_of(broker.url) as shim, shim_in_front_of(broker.url, keys="ff" * 16) as other:
        call = await waiting_call(shim, broker)
        foreign = await waiting_call(other, broker)
        assert await shim.reply(broker.posts[1].token) == 202
        assert not call.done()
        await shim.reply(broker.posts[0].token)
        await other.reply(broker.posts[1].token)
        assert ((await call)[0], (await foreign)[0]) == (200, 200)


async def test_keys_rotate_while_calls_wait(shim: Shim, broker: Server) -> None:
    old, new = SigningKey.parse("00112233445566778899aabbccddeeff"), SigningKey.random()
    early = await waiting_call(shim, broker)
    shim.service.tokens.rotate(Keyring([new, old]))
    late = await waiting_call(shim, broker)
    for posted in broker.posts:
        assert await shim.reply(posted.token) == 202
    assert ((await early)[0], (await late)[0]) == (200, 200)
    shim.service.tokens.rotate(Keyring([new]))
    assert await shim.reply(broker.posts[0].token) == 202
    assert await shim.metric('beckon_shim_replies_total{outcome="foreign"}') == 1


async def test_an_event_without_the_mark_is_acknowledged(shim: Shim) -> None:
    headers = reply_headers("x")
    del headers["ce-replyid"]
    assert (await shim.post(shim.replies + "/replies", headers))[0] == 202


async def test_what_is_no_event_is_400_and_not_a_cloudevent(shim: Shim) -> None:
    status, headers, _ = await shim.post(
        shim.replies + "/replies", {"content-type": "application/json"}, b"{}"
    )
    assert (status, headers["content-type"]) == (400, "application/problem+json")


async def test_a_reply_over_the_limit_is_shown_to_the_caller(broker: Server) -> None:
    async with shim_in_front_of(broker.url, max_event_bytes=65_536) as shim:
        call = await waiting_call(shim, broker)
        assert await shim.reply(broker.posts[0].token, b"x" * 70_000) == 413
        status, body = await call
        assert (status, json.loads(body)["type"]) == (502, "https://beckon.dev/problems/reply-too-large")


async def test_other_paths_and_methods_of_the_reply_port_are_refused(shim: Shim) -> None:
    assert (await shim.post(shim.replies + "/default/main", reply_headers("x")))[0] == 404
    async with shim.client.get(shim.replies + "/replies") as answer:
        assert (answer.status, answer.headers["allow"]) == (405, "POST")


async def test_a_dead_letter_answers_at_once_with_its_reason(shim: Shim, broker: Server) -> None:
    call = await waiting_call(shim, broker)
    reason = base64.b64encode(b'{"title":"Bad arguments","detail":"city is missing"}').decode()
    await shim.dead_letter(
        broker.posts[0],
        ce_knativeerrordest="http://weather.default.svc",
        ce_knativeerrorcode="400",
        ce_knativeerrordata=reason,
    )
    status, body = await call
    problem = json.loads(body)
    assert (status, problem["type"]) == (502, "https://beckon.dev/problems/undeliverable")
    assert problem["code"] == 400
    assert problem["destination"] == "http://weather.default.svc"
    assert problem["reason_text"] == "city is missing"
    assert await shim.metric('beckon_shim_dead_letters_total{outcome="answered"}') == 1


async def test_a_dead_letter_without_reason_says_that_the_tool_may_have_run(
    shim: Shim, broker: Server
) -> None:
    call = await waiting_call(shim, broker)
    await shim.dead_letter(broker.posts[0])
    assert json.loads((await call)[1])["delivered"] is True


async def test_a_reply_may_follow_a_dead_letter_without_reason(shim: Shim, broker: Server) -> None:
    call = await waiting_call(shim, broker)

    await shim.dead_letter(broker.posts[0])
    await shim.reply(broker.posts[0].token, b"3")

    assert await call == (200, b"3")
    assert await shim.metric('beckon_shim_dead_letters_total{outcome="doubtful"}') == 1


async def test_a_reply_that_could_not_be_forwarded_says_that_the_tool_ran(shim: Shim, broker: Server) -> None:
    call = await waiting_call(shim, broker)
    await shim.dead_letter(
        broker.posts[0], ce_knativeerrordest=f"{broker.url}/default/main", ce_knativeerrorcode="400"
    )
    problem = json.loads((await call)[1])
    assert problem["delivered"] is True
    assert "code" not in problem  # it would be taken for the tool's
    assert "the tool answered" in problem["detail"]
    assert "HTTP status 400" in problem["detail"]


async def test_a_dead_lettered_reply_is_still_a_reply(shim: Shim, broker: Server) -> None:
    call = await waiting_call(shim, broker)
    headers = {**reply_headers(broker.posts[0].token), "ce-knativeerrorcode": "500"}
    status, _, body = await shim.post(shim.replies + "/dead-letters", headers, b"3")
    assert (status, body) == (202, b"")
    assert await call == (200, b"3")


async def test_a_dead_letter_no_one_waits_for_is_counted(shim: Shim, broker: Server) -> None:
    posted = await timed_out_call(shim, broker)
    assert await shim.dead_letter(posted) == 202
    assert await shim.dead_letter(Posted("", posted.headers.copy(), b""), ce_correlationid="x") == 202
    assert await shim.metric('beckon_shim_dead_letters_total{outcome="late"}') == 1
    assert await shim.metric('beckon_shim_dead_letters_total{outcome="foreign"}') == 1


async def test_a_late_reply_goes_to_the_sink_with_the_call_it_answers(broker: Server) -> None:
    async with serving() as sink, shim_in_front_of(broker.url, late_reply_sink=sink.url + "/late") as shim:
        token = (await timed_out_call(shim, broker, ce_id="call-7")).token
        assert await shim.reply(token, b"late") == 202
        assert await shim.reply(token, b"late again") == 202
        assert [posted.body for posted in sink.posts] == [b"late"]
        got = sink.posts[0].headers
        assert (got["ce-type"], got["ce-replyid"], got["ce-causationid"]) == (
            "weather.reply",
            token,
            "call-7",
        )
        assert await shim.metric('beckon_shim_replies_total{outcome="late"}') == 1
        assert await shim.metric('beckon_shim_replies_total{outcome="duplicate"}') == 1


async def test_a_late_reply_the_sink_cannot_take_stays_with_the_broker(broker: Server) -> None:
    async with serving() as sink, shim_in_front_of(broker.url, late_reply_sink=sink.url) as shim:
        token = (await timed_out_call(shim, broker)).token

        async def refuse(posted: Posted) -> web.Response:
            return web.Response(status=500)

        sink.behaviour = refuse
        assert await shim.reply(token) == 503
        sink.behaviour = None
        assert await shim.reply(token) == 202
        assert len(sink.posts) == 2


async def test_a_late_reply_without_a_sink_is_counted_and_logged(
    shim: Shim, broker: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    assert await shim.reply((await timed_out_call(shim, broker)).token) == 202
    assert await shim.metric('beckon_shim_replies_total{outcome="late"}') == 1
    assert "late reply reply-1 was dropped" in caplog.text


async def test_a_tool_that_takes_the_call_and_answers_later_lets_its_caller_go(broker: Server) -> None:
    async with serving() as sink, shim_in_front_of(broker.url, late_reply_sink=sink.url) as shim:
        call = asyncio.create_task(shim.call(prefer="respond-async, wait=5"))
        await until(lambda: bool(broker.posts))
        token = broker.posts[0].token

        assert await shim.reply(token, b"{}", ce_beckonstate="accepted") == 202
        status, headers, _ = await call
        assert (status, headers["ce-beckonstate"], "ce-replyid" in headers) == (202, "accepted", False)
        assert sink.posts == []

        for _ in range(2):
            assert await shim.reply(token, b"7") == 202
        assert [(posted.body, posted.headers["ce-causationid"]) for posted in sink.posts] == [
            (b"7", "call-1")
        ]
        assert await shim.metric('beckon_shim_replies_total{outcome="accepted"}') == 1


async def test_a_caller_that_does_not_take_that_waits_for_the_answer(shim: Shim, broker: Server) -> None:
    call = await waiting_call(shim, broker)
    token = broker.posts[0].token

    assert await shim.reply(token, b"{}", ce_beckonstate="accepted") == 202
    assert not call.done()
    assert await shim.reply(token, b"7") == 202

    assert await call == (200, b"7")


async def test_that_a_call_is_taken_is_shown_to_the_sink_where_its_caller_is_gone(broker: Server) -> None:
    async with serving() as sink, shim_in_front_of(broker.url, late_reply_sink=sink.url) as shim:
        token = (await timed_out_call(shim, broker, "respond-async, ")).token

        assert await shim.reply(token, b"{}", ce_beckonstate="accepted") == 202
        assert await shim.reply(token, b"7") == 202

        states = [posted.headers.get("ce-beckonstate") for posted in sink.posts]
        assert states == ["accepted", None]
