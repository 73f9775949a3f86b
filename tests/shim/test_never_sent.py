"""`delivered: false` in the problem of a call: no Broker took it, or its tool cannot have begun."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from tests.broker.broker_process import RunningBroker, delivery, running_broker, trigger
from tests.patience import PATIENCE, eventually, until
from tests.runtime.raw_server import Session, raw_server
from tests.shim.support import Posted, Server, Shim, shim_in_front_of
from tests.silence import silent_address


async def _end_of_call(broker_url: str) -> tuple[int, str, object]:
    """Return status, type and `delivered` of a call to the Broker at this URL."""
    async with shim_in_front_of(broker_url) as shim:
        return await _call(shim)


async def _call(shim: Shim) -> tuple[int, str, object]:
    # Long enough that no stall of this machine is the whole of it.
    status, _, body = await shim.call(prefer="wait=2")
    problem = json.loads(body)
    return status, problem["type"].rpartition("/")[2], problem["delivered"]


async def _close_at_once(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _answer_nothing(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()


async def test_a_broker_that_refuses_connections(unused_tcp_port: int) -> None:
    ended = await _end_of_call(f"http://127.0.0.1:{unused_tcp_port}")
    assert ended == (502, "undeliverable", False)


async def test_a_broker_at_an_address_that_is_silent() -> None:
    with silent_address() as url:
        assert await _end_of_call(url.rstrip("/")) == (502, "undeliverable", False)


@pytest.mark.parametrize("session", [_close_at_once, _answer_nothing])
async def test_a_broker_whose_tls_handshake_does_not_end(session: Session) -> None:
    async with raw_server(session) as url:
        ended = await _end_of_call(url.replace("http:", "https:").removesuffix("/in"))
    assert ended == (502, "undeliverable", False)


@pytest.mark.parametrize(
    ("status", "end"),
    [(503, (503, "broker-busy")), (429, (503, "broker-busy")), (404, (502, "undeliverable"))],
)
async def test_a_broker_that_takes_no_event_until_the_deadline(
    shim: Shim, broker: Server, status: int, end: tuple[int, str]
) -> None:
    async def refuse(_: Posted) -> web.Response:
        return web.Response(status=status)

    broker.behaviour = refuse
    assert await _call(shim) == (*end, False)
    assert len(broker.posts) > 1


async def test_a_broker_that_may_have_taken_an_earlier_post(shim: Shim, broker: Server) -> None:
    """One post of unknown outcome counts, although the Broker refused every other."""
    statuses = [503, 500]

    async def refuse(_: Posted) -> web.Response:
        return web.Response(status=statuses.pop(0) if statuses else 503)

    broker.behaviour = refuse
    assert await _call(shim) == (504, "outcome-unknown", True)


_TOOL = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    print("listening", flush=True)
    connection, _ = server.accept()
    while chunk := connection.recv(65536):
        print("at work", flush=True)
"""
"""A service that takes a request, begins its work, and never answers."""


@contextlib.asynccontextmanager
async def _tool_at_work(port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the service in a process of its own, listening."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _TOOL, str(port), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        assert await asyncio.wait_for(process.stdout.readline(), PATIENCE) == b"listening\n"
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


@contextlib.asynccontextmanager
async def _platform(folder: Path, tool: str) -> AsyncIterator[tuple[Shim, RunningBroker]]:
    """Run a shim and the embedded broker: three attempts, and the shim gets the dead letters."""
    async with running_broker(folder) as running, shim_in_front_of(running.url) as shim:
        retried = delivery(2, f"{shim.replies}/dead-letters")
        running.write(trigger("tool", tool, delivery=retried))
        await eventually(lambda: running.trigger_status("tool"))
        yield shim, running


async def _problem(shim: Shim) -> dict[str, object]:
    """Make a call; return the problem in its answer."""
    status, _, body = await shim.call("/default/default", prefer=f"wait={PATIENCE}")
    problem: dict[str, object] = json.loads(body)
    assert (status, problem["type"]) == (502, "https://beckon.dev/problems/undeliverable")
    return problem


async def test_a_tool_killed_at_work_whose_further_deliveries_are_refused(
    tmp_path: Path, unused_tcp_port: int
) -> None:
    """The dead letter shows the last error alone; the first attempt had begun."""
    async with (
        _tool_at_work(unused_tcp_port) as tool,
        _platform(tmp_path, f"http://127.0.0.1:{unused_tcp_port}") as (shim, broker),
    ):
        call = asyncio.create_task(_problem(shim))
        assert tool.stdout is not None
        assert await asyncio.wait_for(tool.stdout.readline(), PATIENCE) == b"at work\n"
        tool.kill()
        problem = await call
        retries = await broker.metric("retries_total")

    assert retries == 2
    assert "cannot connect" in str(problem["reason_text"])
    assert problem["delivered"] is True
    assert "code" not in problem  # the tool gave no answer


async def test_a_tool_that_refuses_every_delivery(tmp_path: Path, unused_tcp_port: int) -> None:
    async with _platform(tmp_path, f"http://127.0.0.1:{unused_tcp_port}") as (shim, broker):
        problem = await _problem(shim)
        retries = await broker.metric("retries_total")

    assert retries == 2
    assert "cannot connect" in str(problem["reason_text"])
    assert problem["delivered"] is False


@pytest.mark.parametrize(
    ("statuses", "begun"),
    [
        ([404, 404, 404], False),
        ([422], False),
        ([500, 404, 404], True),
        ([503, 422], True),
        ([409] * 3, True),
    ],
)
async def test_a_tool_that_answers_with_these_statuses(
    tmp_path: Path, broker: Server, statuses: list[int], begun: bool
) -> None:
    answers = list(statuses)

    async def answer(_: Posted) -> web.Response:
        return web.Response(status=answers.pop(0))

    broker.behaviour = answer  # here the server is the tool
    async with _platform(tmp_path, broker.url) as (shim, _):
        problem = await _problem(shim)

    assert answers == []
    assert (problem["code"], problem["delivered"]) == (statuses[-1], begun)


async def test_a_dead_letter_of_a_broker_that_says_nothing_of_earlier_attempts(
    shim: Shim, broker: Server
) -> None:
    """As Knative's. The mark of the caller is not the Broker's."""
    call = asyncio.create_task(shim.call(ce_beckonnotbegun="true"))
    await until(lambda: broker.posts)
    await shim.dead_letter(broker.posts[0], ce_knativeerrordest="http://tool", ce_knativeerrorcode="404")

    problem = json.loads((await call)[2])
    assert (problem["code"], problem["delivered"]) == (404, True)
