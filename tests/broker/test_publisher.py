"""The publisher of the log in JetStream, with a real server: stored, refused, and without an answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import nats
import pytest
from nats.aio.client import Client
from nats.errors import ConnectionClosedError
from nats.js.api import DiscardPolicy, StreamConfig
from nats.js.errors import APIError, NoStreamResponseError

from beckon_broker.publisher import Publisher
from tests.nats_server import NatsServer
from tests.patience import PATIENCE


@asynccontextmanager
async def publishing(
    server: NatsServer, seconds: float = PATIENCE
) -> AsyncIterator[tuple[Publisher, Client]]:
    """Open a publisher, and the client that it uses."""
    client = await nats.connect(server.url)
    try:
        publisher = Publisher(client, seconds)
        await publisher.open()
        yield publisher, client
    finally:
        await client.close()


async def stored_in(client: Client, stream: str) -> list[bytes]:
    """Return the messages of a stream."""
    state = (await client.jetstream().stream_info(stream)).state
    numbers = range(state.first_seq, state.last_seq + 1)
    found = [await client.jetstream().get_msg(stream, number) for number in numbers]
    return [message.data or b"" for message in found]


async def test_messages_at_once_are_stored_and_each_id_once(nats_server: NatsServer) -> None:
    stream = uuid4().hex[:16]
    async with publishing(nats_server) as (publisher, client):
        await client.jetstream().add_stream(StreamConfig(name=stream, subjects=[f"{stream}.>"]))

        texts = [b"%d" % number for number in range(50)]
        await asyncio.gather(*(publisher.publish(f"{stream}.a", text, text.decode()) for text in texts))
        await publisher.publish(f"{stream}.b", b"again", "7")

        assert sorted(await stored_in(client, stream), key=int) == texts


async def test_a_subject_of_no_stream_is_refused_at_once(nats_server: NatsServer) -> None:
    async with publishing(nats_server) as (publisher, _):
        with pytest.raises(NoStreamResponseError):
            await publisher.publish(f"{uuid4().hex}.a", b"{}", "1")


async def test_a_refusal_has_the_words_of_the_server(nats_server: NatsServer) -> None:
    stream = uuid4().hex[:16]
    full = StreamConfig(name=stream, subjects=[f"{stream}.>"], max_msgs=1, discard=DiscardPolicy.NEW)
    async with publishing(nats_server) as (publisher, client):
        await client.jetstream().add_stream(full)
        await publisher.publish(f"{stream}.a", b"first", "1")

        with pytest.raises(APIError, match="maximum messages exceeded"):
            await publisher.publish(f"{stream}.a", b"second", "2")

        assert await stored_in(client, stream) == [b"first"]


async def test_without_an_answer_it_gives_up_in_its_time_and_goes_on_later(own_server: NatsServer) -> None:
    stream = uuid4().hex[:16]
    async with publishing(own_server, seconds=0.3) as (publisher, client):
        await client.jetstream().add_stream(StreamConfig(name=stream, subjects=[f"{stream}.>"]))
        own_server.pause()
        try:
            with pytest.raises(TimeoutError):
                await publisher.publish(f"{stream}.a", b"first", "1")
        finally:
            own_server.resume()
        patient = Publisher(client, PATIENCE)
        await patient.open()
        await patient.publish(f"{stream}.a", b"first", "1")

        assert await stored_in(client, stream) == [b"first"]


async def test_before_it_is_opened_it_says_that_there_is_no_connection() -> None:
    with pytest.raises(ConnectionClosedError):
        await Publisher(Client(), PATIENCE).publish("a.b", b"{}", "1")
