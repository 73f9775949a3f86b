"""Calls whose event no Broker took: the problem says `delivered: false`."""

import asyncio
import json

import pytest
from aiohttp import web

from tests.shim.support import Posted, Server, Shim, shim_in_front_of
from tests.shim.test_client import Session, raw_server
from tests.silence import silent_address


async def _end_of_call(broker_url: str) -> tuple[int, str, object]:
    """Return status, type and `delivered` of a call to the Broker at this URL."""
    async with shim_in_front_of(broker_url) as shim:
        return await _call(shim)


async def _call(shim: Shim) -> tuple[int, str, object]:
    status, _, body = await shim.call(prefer="wait=0.5")
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
