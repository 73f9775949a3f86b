"""What the shim streams before its answer: reports for who listens, and the same outcome in the end."""

import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from beckon_agent.tool_calls.caller import Dispatcher
from beckon_agent.tool_calls.outcome import CallOutcome
from beckon_agent.tool_calls.progress import ProgressReport, listen_to_reports, read_report
from beckon_contract.cloudevents.events import CloudEvent
from tests.agent.tool_calls.test_broker import REPLY, a_call, error

EVENT = {"specversion": "1.0", "id": "r", "source": "/t", "type": "my.echo.reply"}
Behaviour = Callable[[web.Request], Any]


@asynccontextmanager
async def shim(behaviour: Behaviour) -> AsyncIterator[str]:
    """Serve in place of the shim, with answers that may be streams."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", behaviour)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def stream_event(name: str, document: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(document)}\n\n".encode()


def progress(done: object, **more: object) -> bytes:
    return stream_event("progress", {**EVENT, "data": {"progress": done, **more}})


def reply(data: object) -> bytes:
    return stream_event("reply", {**EVENT, "datacontenttype": "application/json", "data": data})


def streaming(*pieces: bytes) -> Behaviour:
    async def stream(request: web.Request) -> web.StreamResponse:
        assert "text/event-stream" in request.headers["accept"]
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        return response

    return stream


async def called(
    session: aiohttp.ClientSession, behaviour: Behaviour, *, limit: int = 100_000
) -> tuple[CallOutcome, list[ProgressReport]]:
    received: list[ProgressReport] = []
    async with shim(behaviour) as url:
        with listen_to_reports(received.append):
            outcome = await Dispatcher(session, url, max_reply_bytes=limit).send(a_call())
    return outcome, received


async def test_reports_are_received_before_the_reply(session: aiohttp.ClientSession) -> None:
    stream = streaming(progress(1, total=2, message="half"), progress(2, total=2), reply({"a": [1]}))
    outcome, received = await called(session, stream)

    assert received == [ProgressReport(1, 2, "half"), ProgressReport(2, 2)]
    assert outcome == CallOutcome({"a": [1]})


async def test_a_report_that_is_overtaken_is_not_received(session: aiohttp.ClientSession) -> None:
    _, received = await called(session, streaming(progress(1), progress(3), progress(2), reply(0)))

    assert [report.done for report in received] == [1, 3]


async def test_what_is_no_report_is_passed_over(session: aiohttp.ClientSession) -> None:
    strange = [
        progress("half"),
        progress(True),
        progress(None),
        progress(10**400),
        stream_event("progress", {"no": "event"}),
    ]
    outcome, received = await called(session, streaming(*strange, stream_event("news", {}), reply("done")))

    assert received == []
    assert outcome == CallOutcome("done")


async def test_data_that_came_as_bytes_is_read_as_what_it_is(session: aiohttp.ClientSession) -> None:
    encoded = base64.b64encode(b'{\n "a": 1\n}').decode()
    event = {**EVENT, "datacontenttype": "application/json", "data_base64": encoded}
    outcome, _ = await called(session, streaming(progress(1), stream_event("reply", event)))

    assert outcome == CallOutcome({"a": 1})


async def test_a_problem_at_the_end_is_the_failure_that_it_is_anyway(session: aiohttp.ClientSession) -> None:
    problem = {"status": 502, "code": 422, "delivered": False, "reason_text": "n: too large"}
    outcome, _ = await called(session, streaming(progress(1), stream_event("problem", problem)))

    assert (error(outcome)["reason"], error(outcome)["message"]) == ("invalid_arguments", "n: too large")


async def test_a_reply_over_the_limit_is_a_failure_of_the_tool(session: aiohttp.ClientSession) -> None:
    outcome, _ = await called(session, streaming(progress(1), reply("x" * 2000)), limit=1000)

    assert "larger than 1000 bytes" in error(outcome)["message"]


async def test_a_stream_that_breaks_off_leaves_the_outcome_unknown(
    session: aiohttp.ClientSession,
) -> None:
    ids: list[str] = []

    async def dies_once(request: web.Request) -> web.StreamResponse:
        ids.append(request.headers["ce-id"])
        response: web.StreamResponse = await streaming(progress(1))(request)
        assert request.transport is not None
        request.transport.close()
        return response

    outcome, received = await called(session, dies_once)

    assert error(outcome)["reason"] == "outcome_unknown"
    assert (ids, received) == (["run.0.0"], [ProgressReport(1)])


async def test_no_one_who_does_not_listen_asks_for_a_stream(session: aiohttp.ClientSession) -> None:
    async def plain(request: web.Request) -> web.Response:
        return web.Response(text=json.dumps(request.headers.getall("accept")), headers=REPLY)

    async with shim(plain) as url:
        outcome = await Dispatcher(session, url).send(a_call())

    assert outcome == CallOutcome(["*/*"])


def test_a_message_is_no_longer_than_anybody_reads() -> None:
    data = json.dumps({"progress": 1, "message": "x" * 4000}).encode()
    report = read_report(CloudEvent("r", "/t", "x", data, "application/json"))

    assert report is not None
    assert len(report.message) == 500
