"""Reports of how far a call has come: who hears them, in what form, and what becomes of the others."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping

import aiohttp
import pytest
from aiohttp import web

from beckon_contract.cloudevents.events import from_structured
from tests.patience import until
from tests.shim.support import (
    CALL,
    Posted,
    Server,
    Shim,
    reply_headers,
    serving,
    shim_in_front_of,
    timed_out_call,
)

LISTENING = {**CALL, "accept": "application/json, text/event-stream;q=0.9"}
Message = tuple[str, dict[str, object]]


class Caller:
    """One call in progress, and the reports of it."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer

    async def received(self) -> list[Message]:
        """Return all that is still to come."""
        return [shown async for shown in self]

    async def __aiter__(self) -> AsyncIterator[Message]:
        while (line := await self.answer.content.readline()) != b"":
            data = await self.answer.content.readline()
            assert await self.answer.content.readline() == b"\n"
            yield line.decode().removeprefix("event: ").strip(), json.loads(data.removeprefix(b"data: "))


async def report(shim: Shim, token: str, done: float, **more: str) -> int:
    """Deliver a report to this replica, as a Broker would; return the status."""
    return await deliver(shim, token, json.dumps({"progress": done, "total": 3}).encode(), **more)


async def deliver(shim: Shim, token: str, data: bytes, **more: str) -> int:
    headers = reply_headers(token)
    del headers["ce-replyid"]
    headers |= {"ce-type": "weather.progress", "ce-beckonstate": "progress", "ce-beckonprogress": token}
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    status, _, body = await shim.post(shim.replies + "/progress", headers, data)
    assert body == b"" or status >= 400
    return status


@contextlib.asynccontextmanager
async def calling(
    shim: Shim, broker: Server, headers: Mapping[str, str] = LISTENING
) -> AsyncIterator["asyncio.Task[Caller]"]:
    """Start a call; its event is at the Broker then, and its answer has yet to begin."""
    before = len(broker.posts)

    async def begin() -> Caller:
        return Caller(await shim.client.post(shim.url + "/default/main", headers=headers, data=b"{}"))

    task = asyncio.create_task(begin())
    await until(lambda: len(broker.posts) > before)
    yield task
    (await task).answer.close()


async def outcome(shim: Shim, name: str) -> float:
    return await shim.metric(f'beckon_shim_reports_total{{outcome="{name}"}}')


async def test_the_first_report_makes_the_answer_a_stream_that_ends_with_the_reply(
    shim: Shim, broker: Server
) -> None:
    async with calling(shim, broker) as call:
        token = broker.posts[0].token
        assert await report(shim, token, 1) == 202
        caller = await call
        assert caller.answer.status == 200
        assert caller.answer.headers["content-type"] == "text/event-stream"
        name, first = await anext(aiter(caller))
        assert (name, first["data"], first["type"]) == (
            "progress",
            {"progress": 1, "total": 3},
            "weather.progress",
        )
        assert await report(shim, token, 2) == 202
        await shim.reply(token, b'{"degrees":21}')
        (_, second), (last, reply) = await caller.received()

    assert second["data"] == {"progress": 2, "total": 3}
    assert (last, reply["type"], reply["data"]) == ("reply", "weather.reply", {"degrees": 21})
    assert token not in str([first, second, reply])
    assert await outcome(shim, "passed") == 2


async def test_a_connection_serves_another_request_after_a_stream(shim: Shim, broker: Server) -> None:
    for number in range(2):
        async with calling(shim, broker) as call:
            token = broker.posts[number].token
            await report(shim, token, 1)
            await shim.reply(token)
            assert len(await (await call).received()) == 2
    assert len(shim.service._servers[0].connections) == 1


async def test_without_a_report_the_answer_is_the_usual_one(shim: Shim, broker: Server) -> None:
    async with calling(shim, broker) as call:
        await shim.reply(broker.posts[0].token, b"21")
        answer = (await call).answer
        assert (answer.headers["ce-type"], await answer.read()) == ("weather.reply", b"21")


@pytest.mark.parametrize("accept", ["*/*", "application/json, text/*", ""])
async def test_who_does_not_name_event_streams_gets_no_report(
    shim: Shim, broker: Server, accept: str
) -> None:
    async with calling(shim, broker, {**CALL, "accept": accept}) as call:
        token = broker.posts[0].token
        assert await report(shim, token, 1) == 202
        await shim.reply(token, b"21")
        assert await (await call).answer.read() == b"21"
    assert await outcome(shim, "unheard") == 1


@pytest.mark.parametrize("data", [b'{\n  "degrees": 21\r\n}', b"not JSON\n", b"", b"\xff\n"])
async def test_the_data_of_a_reply_stays_byte_for_byte(shim: Shim, broker: Server, data: bytes) -> None:
    async with calling(shim, broker) as call:
        token = broker.posts[0].token
        await report(shim, token, 1)
        await shim.reply(token, data)
        _, (last, reply) = await (await call).received()

    assert last == "reply"
    assert (from_structured(json.dumps(reply).encode()).data or b"") == data


async def test_a_failure_ends_the_stream_with_its_problem(shim: Shim, broker: Server) -> None:
    async with calling(shim, broker) as call:
        await report(shim, broker.posts[0].token, 1)
        await shim.dead_letter(broker.posts[0], ce_knativeerrorcode="422")
        _, (name, problem) = await (await call).received()

    assert (name, problem["status"], problem["code"]) == ("problem", 502, 422)
    assert await shim.metric('beckon_shim_calls_total{outcome="undeliverable"}') == 1


async def test_that_a_call_is_taken_ends_the_stream_of_who_takes_that(shim: Shim, broker: Server) -> None:
    async with calling(shim, broker, {**LISTENING, "prefer": "respond-async"}) as call:
        token = broker.posts[0].token
        await report(shim, token, 1)
        await shim.reply(token, b"", ce_beckonstate="accepted")
        _, (name, event) = await (await call).received()

    assert (name, event["beckonstate"]) == ("accepted", "accepted")


async def test_of_quick_reports_a_caller_gets_the_first_and_the_last(shim: Shim, broker: Server) -> None:
    async with calling(shim, broker) as call:
        token = broker.posts[0].token
        await asyncio.gather(*(report(shim, token, 1) for _ in range(50)))
        await report(shim, token, 3)
        await shim.reply(token)
        shown = await (await call).received()

    assert len(shown) < 20
    assert shown[0][1]["data"] == {"progress": 1, "total": 3}
    assert shown[-2][1]["data"] == {"progress": 3, "total": 3}
    assert shown[-1][0] == "reply"


async def test_a_report_with_a_foreign_token_is_taken_and_passed_to_no_one(
    shim: Shim, broker: Server
) -> None:
    async with calling(shim, broker) as call:
        token = broker.posts[0].token
        assert await report(shim, token[:-2] + "AA", 1) == 202
        assert await report(shim, "nonsense", 1) == 202
        await shim.reply(token, b"21")
        assert await (await call).answer.read() == b"21"
    assert await outcome(shim, "foreign") == 2


async def test_a_report_behind_the_answer_is_taken_and_passed_to_no_one(shim: Shim, broker: Server) -> None:
    async with calling(shim, broker) as call:
        await shim.reply(broker.posts[0].token)
        await call
    assert await report(shim, broker.posts[0].token, 3) == 202
    assert await outcome(shim, "behind") == 1


async def test_a_report_of_a_call_that_was_taken_goes_to_the_sink_of_late_replies(broker: Server) -> None:
    async with (
        serving() as sink,
        shim_in_front_of(broker.url, late_reply_sink=sink.url) as shim,
        calling(shim, broker, {**LISTENING, "prefer": "respond-async"}) as call,
    ):
        token = broker.posts[0].token
        await shim.reply(token, b"", ce_beckonstate="accepted")
        assert (await call).answer.status == 202
        assert await report(shim, token, 1) == 202
        (late,) = sink.posts
        assert late.headers["ce-beckonprogress"] == token
        assert late.headers["ce-causationid"] == "call-1"
        assert await outcome(shim, "late") == 1


async def test_a_sink_that_does_not_take_a_report_is_not_called_again(broker: Server) -> None:
    async def refuse(_: Posted) -> web.Response:
        return web.Response(status=503)

    async with (
        serving() as sink,
        shim_in_front_of(broker.url, late_reply_sink=sink.url) as shim,
    ):
        sink.behaviour = refuse
        posted = await timed_out_call(shim, broker)
        assert await report(shim, posted.token, 1) == 202
        assert len(sink.posts) == 1
        assert await outcome(shim, "lost") == 1


async def test_a_report_that_is_too_large_is_dropped(broker: Server) -> None:
    async with (
        shim_in_front_of(broker.url, max_event_bytes=65_536) as shim,
        calling(shim, broker) as call,
    ):
        token = broker.posts[0].token
        assert await deliver(shim, token, b'"' + b"x" * 5_000 + b'"') == 202
        assert await deliver(shim, token, b'"' + b"x" * 70_000 + b'"') == 413
        await shim.reply(token, b"21")
        assert await (await call).answer.read() == b"21"
        assert await outcome(shim, "too_large") == 2


async def test_a_caller_that_hangs_up_between_reports_frees_its_slot(shim: Shim, broker: Server) -> None:
    async with calling(shim, broker) as call:
        await report(shim, broker.posts[0].token, 1)
        (await call).answer.close()
        await until(lambda: len(shim.service.waiters) == 0)
    assert await shim.metric('beckon_shim_calls_total{outcome="hung_up"}') == 1


async def test_a_report_that_reaches_the_wrong_replica_is_passed_on(broker: Server) -> None:
    async with shim_in_front_of(broker.url, replica="shim-1") as waiting:
        peers = f"shim-1={waiting.replies}, gone=http://127.0.0.1:9"
        async with (
            shim_in_front_of(broker.url, replica="shim-0", peers=peers) as other,
            calling(waiting, broker) as call,
        ):
            token = broker.posts[0].token
            assert await report(other, token, 1) == 202
            await waiting.reply(token)
            assert [name for name, _ in await (await call).received()] == ["progress", "reply"]
            assert await outcome(other, "forwarded") == 1


async def test_a_report_for_a_replica_that_is_gone_is_taken_all_the_same(broker: Server) -> None:
    async with (
        shim_in_front_of(broker.url, replica="shim-1") as gone,
        shim_in_front_of(broker.url, replica="shim-0", peers="shim-1=http://127.0.0.1:9") as other,
        calling(gone, broker) as call,
    ):
        token = broker.posts[0].token
        assert await report(other, token, 1) == 202
        assert await outcome(other, "lost") == 1
        await gone.reply(token)
        await call
