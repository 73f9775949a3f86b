"""Probes: the shim's own small events, which find out whether replies arrive."""

import asyncio
import json
from collections.abc import Mapping

from aiohttp import web

from tests.patience import eventually, until
from tests.shim.support import Posted, Server, Shim, reply_headers, serving, shim_in_front_of

PATH = "/probes/team/default"


async def probe(shim: Shim, **headers: str) -> tuple[int, str]:
    """Ask for a probe; return the status and the type of the problem, "" for none."""
    status, _, body = await shim.post(shim.replies + PATH, headers)
    return status, "" if status == 200 else str(json.loads(body)["type"]).rpartition("/")[2]


def attributes(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of an event."""
    return {name.lower(): value for name, value in headers.items() if name.lower().startswith("ce-")}


def bring_replies(broker: Server, shim: Shim) -> None:
    """Behave as a Broker whose reply Trigger leads to this shim: deliver an event, and its answer."""

    async def deliver(posted: Posted) -> web.Response | None:
        status, headers, _ = await shim.post(f"{shim.replies}/replies", attributes(posted.headers))
        assert status == 200
        assert (await shim.post(f"{shim.replies}/replies", attributes(headers)))[0] == 202
        return None

    broker.behaviour = deliver


async def test_a_probe_comes_back_where_the_broker_brings_replies(shim: Shim, broker: Server) -> None:
    bring_replies(broker, shim)

    assert await probe(shim) == (200, "")
    assert await shim.metric('beckon_shim_replies_total{outcome="probe"}') == 1
    assert await shim.metric('beckon_shim_replies_total{outcome="answered"}') == 1


async def test_its_event_passes_the_reply_trigger_and_is_no_call(shim: Shim, broker: Server) -> None:
    bring_replies(broker, shim)
    await probe(shim)

    (posted,) = broker.posts
    event = attributes(posted.headers)
    assert posted.path == "/team/default"
    assert event["ce-type"] == "dev.beckon.probe"
    assert event["ce-replyid"]
    assert "ce-correlationid" not in event
    assert posted.body == b""


async def test_a_broker_that_swallows_replies_is_seen_at_the_deadline(shim: Shim, broker: Server) -> None:
    assert await probe(shim, prefer="wait=1") == (504, "timeout")
    assert len(broker.posts) == 1


async def test_a_broker_that_refuses_says_so(shim: Shim, broker: Server) -> None:
    async def refuse(_: Posted) -> web.Response:
        return web.Response(status=400)

    broker.behaviour = refuse

    assert await probe(shim) == (502, "undeliverable")


async def test_probes_at_once_and_shortly_after_are_one(shim: Shim, broker: Server) -> None:
    bring_replies(broker, shim)

    assert await asyncio.gather(*(probe(shim) for _ in range(5))) == [(200, "")] * 5
    assert await probe(shim) == (200, "")
    assert len(broker.posts) == 1


async def test_after_a_while_there_is_a_new_one(shim: Shim, broker: Server) -> None:
    bring_replies(broker, shim)
    await probe(shim)

    async def probe_again() -> bool:
        await probe(shim)
        return len(broker.posts) == 2

    await eventually(probe_again)


async def test_no_credential_is_needed_and_only_post_is_taken(broker: Server) -> None:
    async with shim_in_front_of(broker.url, open_calls=False) as shim:
        bring_replies(broker, shim)
        async with shim.client.get(shim.replies + PATH) as answer:
            assert answer.status == 405

        assert await probe(shim) == (200, "")
        assert (await shim.call())[0] == 401


async def test_any_replica_answers_a_probe(broker: Server) -> None:
    async with shim_in_front_of(broker.url, replica="shim-1") as other:
        peers = f"shim-1={other.replies}"
        async with shim_in_front_of(broker.url, replica="shim-0", peers=peers) as shim:
            running = asyncio.create_task(probe(shim))
            await until(lambda: broker.posts)
            call = attributes(broker.posts[0].headers)
            status, headers, _ = await other.post(f"{other.replies}/replies", call)

            assert status == 200
            assert await shim.post(f"{shim.replies}/replies", attributes(headers))
            assert await running == (200, "")


async def test_a_forged_probe_gets_no_answer(shim: Shim) -> None:
    forged = {
        **reply_headers("shim-0.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA"),
        "ce-type": "dev.beckon.probe",
    }

    assert (await shim.post(f"{shim.replies}/replies", forged))[0] == 202
    assert await shim.metric('beckon_shim_replies_total{outcome="foreign"}') == 1


async def test_a_dead_letter_of_a_probe_is_not_answered(shim: Shim, broker: Server) -> None:
    running = asyncio.create_task(probe(shim, prefer="wait=0.5"))
    await until(lambda: broker.posts)
    call = attributes(broker.posts[0].headers)

    assert (await shim.post(f"{shim.replies}/dead-letters", call))[0] == 202
    assert await running == (504, "timeout")


async def test_a_late_answer_goes_to_no_run(broker: Server) -> None:
    async with serving() as sink, shim_in_front_of(broker.url, late_reply_sink=sink.url) as shim:
        await probe(shim, prefer="wait=1")
        status, headers, _ = await shim.post(f"{shim.replies}/replies", attributes(broker.posts[0].headers))
        assert status == 200

        assert (await shim.post(f"{shim.replies}/replies", attributes(headers)))[0] == 202
        assert await shim.metric('beckon_shim_replies_total{outcome="late"}') == 1
        assert sink.posts == []
