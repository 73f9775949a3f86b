import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from beckon_shim.service import WaitTimes
from tests.patience import PATIENCE, until
from tests.shim.support import CALL, Posted, Server, Shim, reply_headers, serving, shim_in_front_of


async def test_a_call_is_answered_with_its_reply_in_binary_mode(shim: Shim, echoing: Server) -> None:
    status, headers, body = await shim.call(data=b'{"city":"K\xc3\xb6ln"}')
    assert (status, body) == (200, b'{"city":"K\xc3\xb6ln"}')
    assert headers["ce-type"] == "weather.reply"
    assert headers["ce-id"] == "reply-1"
    assert headers["content-type"] == "application/json"
    assert "ce-replyid" not in headers
    assert "ce-correlationid" not in headers


async def test_the_broker_gets_the_event_with_token_and_expiry(shim: Shim, echoing: Server) -> None:
    before = datetime.now(UTC)
    await shim.call(ce_subject="a%20b", traceparent="00-1", prefer="wait=2.5")
    posted = echoing.posts[0]
    assert posted.path == "/default/main"
    assert posted.headers["ce-subject"] == "a%20b"
    assert posted.headers["traceparent"] == "00-1"
    assert posted.headers["ce-correlationid"].startswith("shim-0.")
    expiry = datetime.fromisoformat(posted.headers["ce-expirytime"])
    assert timedelta(seconds=2) < expiry - before < timedelta(seconds=2.5 + PATIENCE)
    assert "prefer" not in posted.headers


async def test_each_path_goes_to_its_broker(shim: Shim, echoing: Server) -> None:
    assert (await shim.call("/team-a/orders.eu"))[0] == 200
    assert echoing.posts[0].path == "/team-a/orders.eu"


async def test_what_the_caller_knows_of_the_tool_is_written_into_the_call(
    shim: Shim, echoing: Server
) -> None:
    await shim.call(beckon_idempotent="true", beckon_reply="any")
    await shim.call(beckon_idempotent="yes", beckon_reply="some")
    hints = ("ce-beckonidempotent", "ce-beckonreply")
    assert [[posted.headers.get(name) for name in hints] for posted in echoing.posts] == [
        ["true", "any"],
        [None, None],
    ]
    assert "beckon-reply" not in echoing.posts[0].headers


@pytest.mark.parametrize(
    "path", ["/", "/default", "/default/main/more", "/Default/main", "/a b/c", "/-a/b", "/a/b_c"]
)
async def test_a_path_that_names_no_broker_is_not_found(shim: Shim, path: str) -> None:
    status, headers, body = await shim.call(path)
    assert (status, headers["content-type"]) == (404, "application/problem+json")
    assert "/<namespace>/<broker>" in json.loads(body)["detail"]


async def test_without_placeholders_every_path_goes_to_the_one_broker() -> None:
    async with serving() as broker, shim_in_front_of(broker_url=f"{broker.url}/one?a=b") as shim:

        async def echo(posted: Posted) -> None:
            await shim.reply(posted.token)

        broker.behaviour = echo
        assert (await shim.call("/"))[0] == 200
        assert (await shim.call("/anything/at/all"))[0] == 200
        assert [posted.path for posted in broker.posts] == ["/one", "/one"]


async def test_a_structured_call_is_sent_on_in_binary_mode(shim: Shim, echoing: Server) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "weather", "data": {"a": 1e2}, "n": 5}
    headers = {"content-type": "application/cloudevents+json; charset=utf-8"}
    status, _, body = await shim.post(shim.url + "/default/main", headers, json.dumps(event).encode())
    assert (status, body) == (200, b'{"a": 100.0}')
    assert echoing.posts[0].headers["ce-n"] == "5"
    assert echoing.posts[0].headers["content-type"] == "application/json"


async def test_a_structured_reply_answers_the_caller_in_binary_mode(shim: Shim, broker: Server) -> None:
    async def reply(posted: Posted) -> None:
        event = {
            "specversion": "1.0",
            "id": "r",
            "source": "/t",
            "type": "reply",
            "replyid": posted.token,
            "data": [1],
        }
        headers = {"content-type": "application/cloudevents+json"}
        await shim.post(shim.replies + "/replies", headers, json.dumps(event).encode())

    broker.behaviour = reply
    status, headers, body = await shim.call()
    assert (status, headers["ce-type"], body) == (200, "reply", b"[1]")
    assert headers["content-type"] == "application/json"


async def test_a_token_of_the_caller_is_replaced_and_a_reply_mark_taken_off(
    shim: Shim, echoing: Server
) -> None:
    assert (await shim.call(ce_correlationid="mine", ce_replyid="mine too"))[0] == 200
    assert echoing.posts[0].headers["ce-correlationid"] != "mine"
    assert "ce-replyid" not in echoing.posts[0].headers


async def test_no_reply_in_time_is_504_without_the_token_that_could_answer_the_call(
    shim: Shim, broker: Server
) -> None:
    status, headers, body = await shim.call(prefer="respond-async, wait=1")
    problem = json.loads(body)
    assert (status, headers["content-type"]) == (504, "application/problem+json")
    assert problem["type"].endswith("/timeout")
    assert broker.posts[0].token
    assert broker.posts[0].token not in str((headers, problem))
    assert len(shim.service.waiters) == 0


async def test_the_deadline_may_come_from_the_events_own_expiry(shim: Shim, broker: Server) -> None:
    soon = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    status, _, _ = await shim.call(ce_expirytime=soon)
    assert status == 504
    assert broker.posts[0].headers["ce-expirytime"] == soon


async def test_an_event_that_has_expired_is_not_sent(shim: Shim, broker: Server) -> None:
    status, _, body = await shim.call(ce_expirytime="2020-01-01T00:00:00Z")
    assert (status, json.loads(body)["type"]) == (504, "https://beckon.dev/problems/expired")
    assert broker.posts == []


async def test_no_caller_waits_longer_than_the_limit() -> None:
    async with (
        serving() as broker,
        shim_in_front_of(broker.url, waits=WaitTimes(without_preference=0.1), max_timeout=0.5) as shim,
    ):
        status, _, body = await shim.call(prefer="wait=999999")
        assert status == 504
        assert "0.5 s" in json.loads(body)["detail"]


@pytest.mark.parametrize(
    ("headers", "status", "word"),
    [
        ({"ce-specversion": "0.3"}, 400, "specversion"),
        ({"ce-id": ""}, 400, "'id'"),
        ({"ce-Bad_Name": "x"}, 400, "bad_name"),
        ({"ce-time": "yesterday"}, 400, "time"),
        ({"ce-subject": "%FF"}, 400, "UTF-8"),
        ({"ce-expirytime": "soon"}, 400, "expirytime"),
        ({"content-type": "application/cloudevents-batch+json"}, 415, "batch"),
        ({"content-type": "application/cloudevents+xml"}, 415, "cloudevents+json"),
        ({"content-type": "application/cloudevents+json"}, 400, "JSON"),
    ],
)
async def test_what_is_no_event_is_refused_with_the_reason(
    shim: Shim, broker: Server, headers: dict[str, str], status: int, word: str
) -> None:
    got, answer, body = await shim.post(shim.url + "/default/main", {**CALL, **headers}, b"oops")
    assert (got, answer["content-type"]) == (status, "application/problem+json")
    assert word in json.loads(body)["detail"]
    assert broker.posts == []


async def test_a_structured_event_that_no_header_can_hold_is_refused(shim: Shim, broker: Server) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", "data": ""}
    event["datacontenttype"] = 'text/plain; title="日"'
    headers = {"content-type": "application/cloudevents+json"}
    status, _, body = await shim.post(shim.url + "/default/main", headers, json.dumps(event).encode())

    assert status == 400
    assert "'datacontenttype' is no media type" in json.loads(body)["detail"]
    assert broker.posts == []


async def test_plain_json_is_no_event(shim: Shim) -> None:
    status, _, body = await shim.post(shim.url + "/default/main", {"content-type": "application/json"}, b"{}")
    assert status == 400
    assert "specversion" in json.loads(body)["detail"]


async def test_an_event_over_the_limit_is_413(broker: Server) -> None:
    async with shim_in_front_of(broker.url, max_event_bytes=65_536) as shim:
        status, _, body = await shim.call(data=b"x" * 65_537)
        assert status == 413
        assert "65536" in json.loads(body)["detail"]
        assert broker.posts == []


async def test_only_post_carries_a_call(shim: Shim) -> None:
    async with shim.client.get(shim.url + "/default/main") as answer:
        assert answer.status == 405
        assert answer.headers["allow"] == "POST"
        assert answer.content_type == "application/problem+json"


async def test_a_full_table_is_503_and_frees_up_again(broker: Server) -> None:
    async with shim_in_front_of(broker.url, max_waiting=2) as shim:
        first = [asyncio.create_task(shim.call(ce_id=str(n))) for n in range(2)]
        await until(lambda: len(broker.posts) == 2)
        status, headers, body = await shim.call()
        assert (status, headers["retry-after"]) == (503, "1")
        assert json.loads(body)["type"].endswith("/full")
        for posted in broker.posts:
            assert await shim.reply(posted.token) == 202
        assert [(await call)[0] for call in first] == [200, 200]
        assert await shim.metric('beckon_shim_calls_total{outcome="full"}') == 1


async def test_a_caller_that_hangs_up_frees_its_slot(shim: Shim, broker: Server) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", shim.service.port)
    head = "".join(f"{name}: {value}\r\n" for name, value in CALL.items())
    writer.write(
        f"POST /default/main HTTP/1.1\r\nhost: localhost\r\n{head}content-length: 2\r\n\r\n{{}}".encode()
    )
    await until(lambda: len(broker.posts) == 1)
    assert len(shim.service.waiters) == 1
    writer.close()
    await until(lambda: len(shim.service.waiters) == 0)
    assert await shim.metric('beckon_shim_calls_total{outcome="hung_up"}') == 1
    assert await shim.reply(broker.posts[0].token) == 202
    assert await shim.metric('beckon_shim_replies_total{outcome="late"}') == 1


async def test_three_hundred_calls_at_once_each_get_their_own_reply(shim: Shim, broker: Server) -> None:
    waiting: list[Posted] = []

    async def hold(posted: Posted) -> None:
        waiting.append(posted)

    broker.behaviour = hold
    calls = [
        asyncio.create_task(shim.call(data=json.dumps({"n": n}).encode(), ce_id="the same id"))
        for n in range(300)
    ]
    await until(lambda: len(waiting) == 300)
    assert await shim.metric("beckon_shim_waiting_calls") == 300
    for posted in reversed(waiting):
        assert await shim.reply(posted.token, posted.body) == 202
    answers = await asyncio.gather(*calls)
    assert [(status, json.loads(body)["n"]) for status, _, body in answers] == [(200, n) for n in range(300)]


async def test_a_reply_beats_a_late_failed_acknowledgement(shim: Shim, broker: Server) -> None:
    async def fail_after_the_reply(posted: Posted) -> web.Response:
        assert await shim.reply(posted.token) == 202
        return web.Response(status=500)

    broker.behaviour = fail_after_the_reply
    assert (await shim.call())[0] == 200


async def test_the_reply_marks_may_have_other_names(broker: Server) -> None:
    async with shim_in_front_of(
        broker.url, correlation_attribute="requestid", reply_attribute="responseid"
    ) as shim:

        async def echo(posted: Posted) -> None:
            headers = reply_headers("x")
            del headers["ce-replyid"]
            token = posted.headers["ce-requestid"]
            await shim.post(shim.replies + "/replies", {**headers, "ce-responseid": token}, posted.body)

        broker.behaviour = echo
        status, headers, _ = await shim.call(ce_correlationid="stays")
        assert status == 200
        assert "ce-responseid" not in headers
        assert broker.posts[0].headers["ce-correlationid"] == "stays"


async def test_a_call_whose_data_has_no_media_type_is_refused(shim: Shim, echoing: Server) -> None:
    status, headers, body = await shim.call(content_type="xyz")
    assert (status, headers["content-type"]) == (400, "application/problem+json")
    assert "no media type: 'xyz'" in json.loads(body)["detail"]
    assert not echoing.posts
