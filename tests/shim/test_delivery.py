"""What becomes of a call whose Broker does not take its event, or does not say whether it has."""

import asyncio
import json
import time

import pytest
from aiohttp import web

from tests.patience import until
from tests.shim.support import CALL, Posted, Server, Shim, serving, shim_in_front_of
from tests.silence import silent_address


async def _wait_for_rate(shim: Shim, broker: Server, *statuses: int, retry_after: str = "") -> None:
    """Let the Broker answer so at first, and then take the event and deliver its reply."""
    left = list(statuses)

    async def behave(posted: Posted) -> web.Response | None:
        if left:
            headers = {"retry-after": retry_after} if retry_after else {}
            return web.Response(status=left.pop(0), headers=headers)
        assert await shim.reply(posted.token) == 202
        return None

    broker.behaviour = behave


@pytest.mark.parametrize("status", [404, 429, 503])
async def test_what_the_broker_has_not_taken_is_posted_again_under_the_same_id(
    shim: Shim, broker: Server, status: int
) -> None:
    await _wait_for_rate(shim, broker, status, status)
    assert (await shim.call())[0] == 200
    assert len(broker.posts) == 3
    assert {(posted.headers["ce-id"], posted.token) for posted in broker.posts} == {
        ("call-1", broker.posts[0].token)
    }


async def test_a_call_waits_for_a_broker_that_refuses_connections(
    unused_tcp_port: int,
) -> None:
    async with shim_in_front_of(f"http://127.0.0.1:{unused_tcp_port}") as shim:
        call = asyncio.create_task(shim.call())
        await until(lambda: len(shim.service.waiters) == 1)
        await asyncio.sleep(0.3)  # longer than the first pause
        async with serving(port=unused_tcp_port) as broker:
            await _wait_for_rate(shim, broker)
            assert (await call)[0] == 200
            assert len(broker.posts) == 1


async def test_the_pause_is_at_least_what_the_broker_asks_for(shim: Shim, broker: Server) -> None:
    await _wait_for_rate(shim, broker, 503, retry_after="1")
    begun = time.monotonic()
    assert (await shim.call())[0] == 200
    assert time.monotonic() - begun >= 1


async def test_a_pause_beyond_the_deadline_is_passed_on_to_the_caller(shim: Shim, broker: Server) -> None:
    await _wait_for_rate(shim, broker, 503, retry_after="40")
    status, headers, body = await shim.call()
    problem = json.loads(body)
    assert (status, headers["retry-after"], problem["delivered"]) == (503, "40", False)
    assert len(broker.posts) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 413, 301])
async def test_a_final_refusal_ends_the_call_at_once(shim: Shim, broker: Server, status: int) -> None:
    await _wait_for_rate(shim, broker, status)
    got, _, body = await shim.call()
    problem = json.loads(body)
    assert (got, problem["broker_status"], problem["delivered"]) == (502, status, False)
    assert problem["type"].endswith("/undeliverable")
    assert len(broker.posts) == 1


async def test_a_broker_that_is_not_known_to_the_end_makes_the_call_undeliverable(
    shim: Shim, broker: Server
) -> None:
    await _wait_for_rate(shim, broker, *[404] * 50)
    for _ in range(5):
        status, _, body = await shim.call(prefer="wait=1")
        if status != 504:  # on a busy machine the time may end during a post, which is no refusal yet
            break
    problem = json.loads(body)
    assert (status, problem["broker_status"], problem["delivered"]) == (502, 404, False)
    assert problem["type"].endswith("/undeliverable")
    assert "HTTP status 404" in problem["detail"]
    assert len(broker.posts) > 1


async def test_an_address_that_is_silent_to_the_end_makes_the_call_undeliverable() -> None:
    with silent_address() as url:
        async with shim_in_front_of(url.rstrip("/")) as shim:
            status, _, body = await shim.call(prefer="wait=0.2")
    problem = json.loads(body)
    assert (status, problem["delivered"]) == (502, False)
    assert "no connection" in problem["detail"]


@pytest.mark.parametrize("status", [500, 502, 504])
async def test_a_reply_long_after_a_failed_acknowledgement_still_counts(
    shim: Shim, broker: Server, status: int
) -> None:
    await _wait_for_rate(shim, broker, status)
    call = asyncio.create_task(shim.call())
    await until(lambda: len(broker.posts) == 1)
    await asyncio.sleep(0.7)  # longer than any grace
    assert not call.done()
    assert await shim.reply(broker.posts[0].token) == 202
    assert (await call)[0] == 200
    assert len(broker.posts) == 1


async def test_a_call_that_may_have_arrived_and_has_no_reply_ends_with_an_unknown_outcome(
    shim: Shim, broker: Server
) -> None:
    await _wait_for_rate(shim, broker, *[500] * 50)
    status, headers, body = await shim.call(prefer="wait=0.5")
    problem = json.loads(body)
    assert (status, headers["content-type"]) == (504, "application/problem+json")
    assert problem["type"].endswith("/outcome-unknown")
    assert (problem["delivered"], problem["broker_status"]) == (True, 500)
    assert "may have run" in problem["detail"]
    assert len(broker.posts) == 1
    assert await shim.metric('beckon_shim_calls_total{outcome="outcome_unknown"}') == 1


async def test_an_idempotent_call_is_posted_again_after_a_failed_acknowledgement(
    shim: Shim, broker: Server
) -> None:
    await _wait_for_rate(shim, broker, 500, 502)
    assert (await shim.call(beckon_idempotent="true"))[0] == 200
    assert len(broker.posts) == 3
    assert len({posted.token for posted in broker.posts}) == 1
    assert "beckon-idempotent" not in broker.posts[0].headers


async def test_a_caller_that_hangs_up_ends_the_posts(shim: Shim, broker: Server) -> None:
    await _wait_for_rate(shim, broker, *[503] * 50)
    _, writer = await asyncio.open_connection("127.0.0.1", shim.service.port)
    head = "".join(f"{name}: {value}\r\n" for name, value in CALL.items())
    writer.write(
        f"POST /default/main HTTP/1.1\r\nhost: localhost\r\n{head}content-length: 2\r\n\r\n{{}}".encode()
    )
    await until(lambda: len(broker.posts) == 2)
    writer.close()
    await until(lambda: len(shim.service.waiters) == 0)
    posts = len(broker.posts)
    await asyncio.sleep(1)  # in which two more would have been made
    assert len(broker.posts) == posts


async def test_a_broker_that_dies_with_the_call_on_a_used_connection_is_not_sent_it_again(
    shim: Shim, broker: Server
) -> None:
    async def die(posted: Posted) -> None:
        if len(broker.posts) == 1:
            await shim.reply(posted.token)
        else:
            posted.cut()

    broker.behaviour = die
    assert (await shim.call())[0] == 200
    status, _, body = await shim.call(prefer="wait=0.5")
    assert (status, json.loads(body)["delivered"]) == (504, True)
    assert len(broker.posts) == 2


@pytest.mark.parametrize(("seconds", "posts"), [("50", 3), ("", 2), ("0", 2)])
async def test_a_broker_that_stores_a_call_once_gets_it_again_when_its_answer_is_lost(
    shim: Shim, broker: Server, seconds: str, posts: int
) -> None:
    async def behave(posted: Posted) -> web.Response | None:
        if len(broker.posts) == 2:
            posted.cut()
            return None
        await shim.reply(posted.token)
        headers = {"Beckon-Deduplication-Seconds": seconds} if seconds else {}
        return web.Response(status=202, headers=headers)

    broker.behaviour = behave
    assert (await shim.call())[0] == 200
    status, _, _ = await shim.call(prefer="wait=1")

    assert status == (200 if posts == 3 else 504)
    assert len(broker.posts) == posts
    assert len({posted.token for posted in broker.posts}) == 2


async def test_a_call_is_posted_again_only_as_long_as_the_broker_knows_it(shim: Shim, broker: Server) -> None:
    async def behave(posted: Posted) -> web.Response | None:
        if len(broker.posts) > 1:
            return web.Response(status=500)
        await shim.reply(posted.token)
        return web.Response(status=202, headers={"beckon-deduplication-seconds": "1"})

    broker.behaviour = behave
    assert (await shim.call())[0] == 200
    status, _, body = await shim.call(prefer="wait=3.2")

    assert (status, json.loads(body)["type"].rpartition("/")[2]) == (504, "outcome-unknown")
    assert len(broker.posts) <= 5  # after pauses of at least 0.1, 0.2 and 0.4 s; to the deadline, it were 6
