"""The client of Brokers and subscribers, against servers that behave badly on purpose."""

import asyncio

from beckon_runtime.post_client import PostClient
from beckon_runtime.posts import Target
from tests.patience import PATIENCE, until
from tests.runtime.raw_server import ACCEPTED, post, raw_server, read_post
from tests.silence import silent_address


async def test_connections_are_reused(client: PostClient) -> None:
    connections = 0
    heads = []

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            heads.append(await read_post(reader))
            writer.write(ACCEPTED)

    async with raw_server(session) as url:
        for _ in range(5):
            assert (await post(client, url + "?a=b")).status == 202
    assert connections == 1
    assert heads[0].startswith(b"POST /in?a=b HTTP/1.1\r\nhost: 127.0.0.1:")
    assert heads[0].endswith(b"ce-id: 1\r\ncontent-length: 2\r\n\r\n{}")
    assert len(client) == 0


async def test_a_request_on_a_reset_idle_connection_is_retried_once_on_a_fresh_one(
    client: PostClient,
) -> None:
    bodies = []

    async def one_each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bodies.append(await read_post(reader))
        writer.write(ACCEPTED)
        # The next post on this connection is swallowed and the connection closed.
        await reader.readuntil(b"\r\n\r\n")

    async with raw_server(one_each) as url:
        assert (await post(client, url, b"first")).status == 202
        assert (await post(client, url, b"second")).status == 202
    assert [body[-6:] for body in bodies] == [b"\nfirst", b"second"]


async def test_a_client_of_calls_does_not_repeat_what_was_on_a_lost_connection() -> None:
    bodies = []

    async def one_each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bodies.append(await read_post(reader))
        writer.write(ACCEPTED)
        bodies.append(await read_post(reader))

    client = PostClient(5, repeats=False)
    async with raw_server(one_each) as url:
        assert (await post(client, url, b"first")).status == 202
        ack = await post(client, url, b"second")
    await client.close()
    assert (ack.status, ack.sent) == (0, True)
    assert [body[-6:] for body in bodies] == [b"\nfirst", b"second"]


async def test_a_connection_that_its_server_has_closed_is_not_used() -> None:
    served = asyncio.Event()

    async def one_each(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_post(reader)
        writer.write(ACCEPTED)
        await writer.drain()
        if not served.is_set():
            served.set()
            return
        await reader.read()

    client = PostClient(5, repeats=False)
    async with raw_server(one_each) as url:
        assert (await post(client, url)).status == 202
        await served.wait()
        assert (await post(client, url)).status == 202
    await client.close()


async def test_a_fresh_connection_that_is_lost_is_not_retried(client: PostClient) -> None:
    posts = 0

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal posts
        await read_post(reader)
        posts += 1

    async with raw_server(cut) as url:
        ack = await post(client, url)
    assert (ack.status, ack.sent, posts) == (0, True, 1)


async def test_an_address_may_have_a_user_and_any_characters(client: PostClient) -> None:
    heads = []

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await read_post(reader))
        writer.write(ACCEPTED)
        await reader.read()

    async with raw_server(session) as url:
        origin = url.removesuffix("/in").removeprefix("http://")
        assert (await post(client, f"http://us%40er:pass@{origin}/grün e%20f?a=[ü]&b#c")).status == 202
    assert heads[0].startswith(b"POST /gr%C3%BCn%20e%20f?a=[%C3%BC]&b HTTP/1.1\r\nhost: 127.0.0.1:")
    assert b"\r\nauthorization: Basic dXNAZXI6cGFzcw==\r\n" in heads[0]


async def test_a_post_that_is_not_waited_for_any_more_ends_its_connection() -> None:
    ended = asyncio.Event()
    bodies = []

    async def session(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        bodies.append((await read_post(reader))[-1:])
        await reader.read()
        ended.set()

    client = PostClient(600)
    async with raw_server(session) as url:
        waiting = asyncio.create_task(client.deliver(Target(url), [], b"1"))
        await until(lambda: bodies == [b"1"])
        waiting.cancel()
        await asyncio.wait_for(ended.wait(), PATIENCE)
        withdrawn = asyncio.create_task(client.deliver(Target(url), [], b"2"))
        await asyncio.sleep(0)
        withdrawn.cancel()
        third = asyncio.create_task(client.deliver(Target(url), [], b"3"))
        await until(lambda: len(bodies) == 2)
        third.cancel()
        await asyncio.wait([waiting, withdrawn, third])
    assert bodies == [b"1", b"3"]
    await until(lambda: len(client) == 0)
    await client.close()


async def test_a_burst_is_served_by_few_connections() -> None:
    client = PostClient(PATIENCE)
    connections = 0

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while True:
            await read_post(reader)
            writer.write(ACCEPTED)

    async with raw_server(session) as url:
        acks = await asyncio.gather(*(post(client, url) for _ in range(500)))
        await client.close()
    assert {ack.status for ack in acks} == {202}
    assert connections < 300


async def test_slow_acknowledgements_do_not_hold_up_other_posts(client: PostClient) -> None:
    held: list[asyncio.StreamWriter] = []

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_post(reader)
        held.append(writer)
        await reader.read()

    async with raw_server(session) as url:
        posts = [asyncio.create_task(post(client, url)) for _ in range(200)]
        await until(lambda: len(held) == 200)
        assert len(client) == 200
        for writer in held:
            writer.write(ACCEPTED)
        assert {(await task).status for task in posts} == {202}


async def test_a_post_that_is_never_acknowledged_ends() -> None:
    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    client = PostClient(0.1)
    async with raw_server(session) as url:
        ack = await post(client, url)
    assert (ack.status, ack.sent) == (0, True)
    assert "in time" in ack.error
    await client.close()


async def test_a_post_may_have_less_time_than_the_others() -> None:
    async def silence(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    client = PostClient(600)
    async with raw_server(silence) as url:
        ack = await asyncio.wait_for(client.deliver(Target(url), [], b"{}", seconds=0.1), PATIENCE)

    assert (ack.status, ack.sent, ack.error) == (0, True, "no answer within 0.1 s")
    await client.close()


async def test_a_post_may_have_more_time_than_the_others() -> None:
    async def answer_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_post(reader)
        await asyncio.sleep(1.5)  # longer than the time of the others and the second between two looks
        writer.write(ACCEPTED)
        await reader.read()

    client = PostClient(0.1)
    async with raw_server(answer_late) as url:
        ack = await client.deliver(Target(url), [], b"{}", seconds=PATIENCE)

    assert ack.status == 202
    await client.close()


async def test_an_address_where_nothing_answers_costs_the_connect_time_and_no_more() -> None:
    with silent_address() as url:
        client = PostClient(60, connect_seconds=0.2)
        ack = await post(client, url)
        address = url.removeprefix("http://").removesuffix("/")
        assert (ack.status, ack.sent, ack.error) == (0, False, f"cannot connect to {address}: timed out")
        await client.close()


async def test_where_connections_are_refused_no_post_was_sent(client: PostClient) -> None:
    acks = await asyncio.gather(*(post(client, "http://127.0.0.1:9/") for _ in range(100)))
    assert {(ack.status, ack.sent) for ack in acks} == {(0, False)}
    assert acks[0].error.startswith("cannot connect to 127.0.0.1:9: Connect")


async def test_closing_ends_posts_running() -> None:
    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    client = PostClient(5)
    async with raw_server(session) as url:
        waiting = asyncio.create_task(post(client, url))
        await until(lambda: len(client) == 1)
        await asyncio.sleep(0)
        await client.close()
        assert (await waiting).status == 0


async def test_memory_does_not_grow_with_the_urls_that_strangers_name() -> None:
    # Six thousand answers take a busy machine longer than the five seconds of the other tests.
    client = PostClient(PATIENCE)

    async def session(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await read_post(reader)
            writer.write(ACCEPTED)

    async with raw_server(session) as url:
        for number in range(6000):
            client.post(Target(f"{url}/{number}"), [], b"", lambda _: None)
        assert (await post(client, url)).status == 202
        assert client.known <= 4096
    assert (await post(client, url)).status == 0
    await until(lambda: client.known == 0)
    await client.close()
