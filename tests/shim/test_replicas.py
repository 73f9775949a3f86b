"""Several replicas: replies and dead letters that reach the wrong one."""

import asyncio

from tests.patience import PATIENCE
from tests.shim.support import Server, serving, shim_in_front_of, timed_out_call, waiting_call


async def test_a_reply_that_reaches_the_wrong_replica_is_passed_on(broker: Server) -> None:
    async with shim_in_front_of(broker.url, replica="shim-1") as waiting:
        peers = f"shim-1={waiting.replies}/, shim-2=http://127.0.0.1:9"
        async with shim_in_front_of(broker.url, replica="shim-0", peers=peers) as other:
            call = await waiting_call(waiting, broker)
            assert await other.reply(broker.posts[0].token, b"over there") == 202
            assert await call == (200, b"over there")
            assert await other.metric('beckon_shim_replies_total{outcome="forwarded"}') == 1
            assert await waiting.metric('beckon_shim_replies_total{outcome="answered"}') == 1


async def test_a_dead_letter_that_reaches_the_wrong_replica_is_passed_on(broker: Server) -> None:
    # The template of a StatefulSet with its headless Service; here the replica's name is a host as it is.
    async with shim_in_front_of(broker.url, replica="localhost") as waiting:
        peers = f"http://{{replica}}:{waiting.service.reply_port}"
        async with shim_in_front_of(broker.url, replica="shim-0", peers=peers) as other:
            call = await waiting_call(waiting, broker)
            assert await other.dead_letter(broker.posts[0], ce_knativeerrorcode="500") == 202
            assert (await call)[0] == 502
            assert await other.metric('beckon_shim_dead_letters_total{outcome="forwarded"}') == 1


async def test_a_reply_is_passed_on_once_at_most(broker: Server) -> None:
    # Two replicas that each believe the third to be at the other: a loop, were there a second hop.
    async with shim_in_front_of(broker.url, replica="gone") as gone:
        call = await waiting_call(gone, broker)
        token = broker.posts[0].token
        async with (
            shim_in_front_of(broker.url, replica="shim-1", peers="gone=http://127.0.0.1:9") as second,
            shim_in_front_of(broker.url, replica="shim-0", peers=f"gone={second.replies}") as first,
        ):
            assert await first.reply(token) == 202
            assert await second.metric('beckon_shim_replies_total{outcome="late"}') == 1
        await gone.reply(token)
        assert (await call)[0] == 200


async def test_a_reply_for_a_dead_replica_goes_to_the_late_sink(broker: Server) -> None:
    async with serving() as sink:
        async with shim_in_front_of(broker.url, replica="shim-1") as dying:
            posted = await timed_out_call(dying, broker)
        async with shim_in_front_of(
            broker.url, replica="shim-0", peers="shim-1=http://127.0.0.1:9", late_reply_sink=sink.url
        ) as survivor:
            assert await survivor.reply(posted.token, b"for the dead") == 202
            assert sink.posts[0].body == b"for the dead"


async def test_replicas_that_are_called_after_their_pods_find_each_other_without_a_list(
    broker: Server,
) -> None:
    async with shim_in_front_of(broker.url, pod_ip="127.0.0.2", host="127.0.0.2") as waiting:
        port = waiting.service.reply_port
        async with shim_in_front_of(
            broker.url, pod_ip="127.0.0.3", host="127.0.0.3", reply_port=port
        ) as other:
            call = await waiting_call(waiting, broker)
            assert broker.posts[0].token.startswith("127-0-0-2.")
            assert await other.reply(broker.posts[0].token, b"over there") == 202
            assert await call == (200, b"over there")


async def test_a_reply_for_a_replica_that_was_killed_is_acknowledged_within_seconds(broker: Server) -> None:
    async with shim_in_front_of(broker.url, pod_ip="127.0.0.2", host="127.0.0.2") as killed:
        posted = await timed_out_call(killed, broker)
        port = killed.service.reply_port
    async with shim_in_front_of(
        broker.url, pod_ip="127.0.0.3", host="127.0.0.3", reply_port=port
    ) as survivor:
        async with asyncio.timeout(PATIENCE):
            assert await survivor.reply(posted.token) == 202
            assert await survivor.dead_letter(posted, ce_knativeerrorcode="500") == 202
        assert await survivor.metric('beckon_shim_replies_total{outcome="late"}') == 1
        assert await survivor.metric('beckon_shim_dead_letters_total{outcome="lost"}') == 1
