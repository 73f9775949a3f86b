"""Brokers that serve TLS: verified against what their status says, by name, connection by connection."""

import asyncio
import ssl

import orjson
import pytest
import trustme
import uvloop

from beckon_runtime.post_client import PostClient
from beckon_runtime.posts import Ack, Target
from tests.patience import PATIENCE, until
from tests.shim.support import Server, serving


def context_of(ca: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(*names).configure_cert(context)
    return context


def pem(ca: trustme.CA) -> str:
    return ca.cert_pem.bytes().decode()


async def post(client: PostClient, server: Server, ca_certs: str) -> Ack:
    return await asyncio.wait_for(client.deliver(Target(server.url, ca_certs), [], b"{}"), PATIENCE)


async def test_a_broker_is_trusted_whose_certificate_its_status_vouches_for() -> None:
    old, new = trustme.CA(), trustme.CA()
    client = PostClient(5)
    async with serving(context_of(new, "127.0.0.1")) as server:
        for _ in range(2):
            assert (await post(client, server, pem(old) + pem(new))).status == 202
        assert [posted.body for posted in server.posts] == [b"{}", b"{}"]
    await client.close()


@pytest.mark.parametrize(
    ("names", "ca_certs", "words"),
    [
        (("127.0.0.1",), "", "certificate verify failed"),
        (("127.0.0.1",), pem(trustme.CA()), "certificate verify failed"),
        (("broker.example",), None, "127.0.0.1"),
        (
            ("127.0.0.1",),
            "-----BEGIN CERTIFICATE-----\nnot Base64\n-----END CERTIFICATE-----",
            "cannot connect",
        ),
        (("127.0.0.1",), "nothing at all", "cannot connect"),
    ],
    ids=["unknown", "other", "name", "broken", "empty"],
)
async def test_a_broker_that_is_not_trusted_gets_nothing(
    names: tuple[str, ...], ca_certs: str | None, words: str
) -> None:
    ca = trustme.CA()
    client = PostClient(5)
    async with serving(context_of(ca, *names)) as server:
        ack = await post(client, server, pem(ca) if ca_certs is None else ca_certs)
        assert (ack.status, ack.sent) == (0, False)
        assert words in ack.error
        assert server.posts == []
    await client.close()


def test_the_loop_that_the_shim_runs_on_verifies_alike() -> None:
    ca = trustme.CA()

    async def both() -> tuple[Ack, Ack]:
        client = PostClient(5)
        async with serving(context_of(ca, "127.0.0.1")) as server:
            acks = await post(client, server, pem(ca)), await post(client, server, pem(trustme.CA()))
        await client.close()
        return acks

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        trusted, other = runner.run(both())
    assert trusted.status == 202
    assert (other.status, other.sent) == (0, False)
    assert "certificate verify failed" in other.error


async def test_changed_certificates_count_from_the_next_post_on() -> None:
    trusted, other = trustme.CA(), trustme.CA()
    client = PostClient(5)
    async with serving(context_of(trusted, "127.0.0.1")) as server:
        assert (await post(client, server, pem(trusted))).status == 202
        assert (await post(client, server, pem(other))).status == 0
        assert (await post(client, server, pem(trusted))).status == 202
    await client.close()


async def test_an_idle_connection_over_tls_that_the_server_closed_is_opened_again() -> None:
    ca = trustme.CA()
    client = PostClient(5)
    async with serving(context_of(ca, "127.0.0.1")) as server:
        burst = await asyncio.gather(*(post(client, server, pem(ca)) for _ in range(50)))
        assert {ack.status for ack in burst} == {202}
        assert (await post(client, server, pem(ca))).status == 202
    await until(lambda: len(client) == 0)
    assert orjson.dumps(len(server.posts)) == b"51"
    await client.close()
