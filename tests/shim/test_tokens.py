"""Brokers that require a token (OIDC): one is fetched, used, renewed, and never sent elsewhere."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator

import orjson
import pytest
from aiohttp import web

from beckon_runtime.post_client import PostClient
from beckon_runtime.posts import Ack, Target
from beckon_shim.bearers import Bearers, IssuedToken, NoToken, no_account
from beckon_shim.cluster import Account, Cluster
from beckon_shim.delivery import BrokerPosts
from beckon_shim.service import WaitTimes
from tests.patience import PATIENCE, eventually
from tests.shim.brokers import broker, brokers_at
from tests.shim.support import Posted, Server, Shim, shim_in_front_of
from tests.sources.api_server import ApiServer, refusing

AUDIENCE = "eventing.knative.dev/broker/shop/orders"
ACCOUNT = Account("beckon", "beckon-shim")


@contextlib.asynccontextmanager
async def shim_with(api: ApiServer, account: Account | None = ACCOUNT) -> AsyncIterator[Shim]:
    cluster = Cluster(api.client(), (), account)
    async with shim_in_front_of(
        cluster=cluster, brokers="cluster", waits=WaitTimes(without_preference=20)
    ) as shim:

        async def is_ready() -> bool:
            async with shim.client.get(shim.url + "/readyz") as answer:
                return answer.status == 200

        await eventually(is_ready)
        yield shim


def demand(server: Server, shim: Shim, *tokens: str) -> None:
    """Let a Broker take only posts that bear one of these tokens, and its tool reply to them."""

    async def check(posted: Posted) -> web.Response | None:
        if posted.headers.get("authorization") not in [f"Bearer {token}" for token in tokens]:
            return web.Response(status=401)
        assert await shim.reply(posted.token, b"done") == 202
        return None

    server.behaviour = check


async def test_a_broker_with_an_audience_gets_a_token_for_it_and_one_token_serves_many_calls(
    broker_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with brokers_at(broker("orders", url=broker_server.url, audience=AUDIENCE)) as api:
        async with shim_with(api) as shim:
            demand(broker_server, shim, "secret-1")
            answers = await asyncio.gather(*(shim.call("/shop/orders") for _ in range(20)))
            assert {answer[0] for answer in answers} == {200}
        assert api.issued == [("/api/v1/namespaces/beckon/serviceaccounts/beckon-shim/token", AUDIENCE)]
    assert "secret-1" not in caplog.text


async def test_a_broker_without_an_audience_gets_no_token(broker_server: Server) -> None:
    async with (
        brokers_at(broker("orders", url=broker_server.url)) as api,
        shim_with(api) as shim,
    ):
        await shim.call("/shop/orders", prefer="wait=1")
        assert "authorization" not in broker_server.posts[0].headers
        assert api.issued == []


async def test_where_no_token_can_be_had_the_call_is_a_503_that_names_the_cause(
    broker_server: Server,
) -> None:
    async with brokers_at(broker("orders", url=broker_server.url, audience=AUDIENCE)) as api:
        async with shim_with(api) as shim:
            api.refuse = refusing('serviceaccounts "beckon-shim" is forbidden')
            status, headers, body = await shim.call("/shop/orders")
            problem = orjson.loads(body)
            assert (status, problem["type"].rpartition("/")[2]) == (503, "no-token")
            assert headers["retry-after"] == "3"
            assert problem["delivered"] is False
            for words in ("service account beckon/beckon-shim", "is forbidden", AUDIENCE):
                assert words in problem["detail"]
            assert broker_server.posts == []
        async with shim_with(api_unrefused(api), None) as shim:
            assert b"BECKON_SHIM_SERVICE_ACCOUNT" in (await shim.call("/shop/orders"))[2]


def api_unrefused(api: ApiServer) -> ApiServer:
    api.refuse = lambda _: None
    return api


async def test_a_broker_that_refuses_a_fresh_token_is_reported_as_it_is(broker_server: Server) -> None:
    async with brokers_at(broker("orders", url=broker_server.url, audience=AUDIENCE)) as api:
        async with shim_with(api) as shim:
            demand(broker_server, shim, "another")
            for _ in range(3):
                status, _, body = await shim.call("/shop/orders")
                assert (status, orjson.loads(body)["broker_status"]) == (502, 401)
        assert len(api.issued) == 1


class Issuer:
    """Issues token-1, token-2, …, each valid for so long; a test may let it refuse."""

    def __init__(self, seconds: float = 100.0) -> None:
        self.seconds = seconds
        self.issued = 0
        self.refusing = False
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, audience: str) -> IssuedToken:
        await self.open.wait()
        if self.refusing:
            raise NoToken("not now")
        self.issued += 1
        return IssuedToken(b"token-%d" % self.issued, self.seconds)


async def test_a_refused_token_is_replaced_and_the_post_repeated_once(broker_server: Server) -> None:
    issuer = Issuer()
    posts = BrokerPosts(PostClient(5), Bearers(issuer, fresh_seconds=0.0))
    good = "token-2"

    async def check(posted: Posted) -> web.Response | None:
        return None if posted.headers["authorization"] == f"Bearer {good}" else web.Response(status=401)

    broker_server.behaviour = check
    assert (await deliver(posts, broker_server)).status == 202
    assert len(broker_server.posts) == 2
    good = "another"
    assert (await deliver(posts, broker_server)).status == 401
    assert len(broker_server.posts) == 4
    await posts.close()


async def test_a_token_is_renewed_in_the_background_while_the_old_one_goes_on() -> None:
    issuer = Issuer(seconds=0.5)
    bearers = Bearers(issuer)
    assert await bearers.fetch("a") == b"token-1"
    issuer.open.clear()

    async def is_due() -> bool:
        # Looked at as posts do: it starts the renewal, and has the old token meanwhile.
        assert bearers.cached_token("a") in (b"token-1", None)
        return bearers.cached_token("a") is None

    await eventually(is_due)
    issuer.open.set()
    assert await bearers.fetch("a") == b"token-2"
    assert issuer.issued == 2
    await bearers.close()


async def test_a_renewal_that_fails_costs_nothing_while_the_token_is_valid() -> None:
    issuer = Issuer(seconds=0.4)
    bearers = Bearers(issuer)
    await bearers.fetch("a")
    issuer.refusing = True

    async def is_over() -> bool:
        return bearers.cached_token("a") is None

    await eventually(is_over)
    with pytest.raises(NoToken, match="'a' can be had: not now"):
        await bearers.fetch("a")
    await bearers.close()


async def test_many_posts_at_once_fetch_one_token_and_share_one_refusal() -> None:
    issuer = Issuer()
    bearers = Bearers(issuer)
    assert set(await asyncio.gather(*(bearers.fetch("a") for _ in range(50)))) == {b"token-1"}
    issuer.refusing = True
    refused = await asyncio.gather(*(bearers.fetch("b") for _ in range(50)), return_exceptions=True)
    assert {str(one) for one in refused} == {"no token for the audience 'b' can be had: not now"}
    issuer.refusing = False
    with pytest.raises(NoToken):
        await bearers.fetch("b")
    await bearers.close()


async def test_without_an_account_there_are_no_tokens() -> None:
    bearers = Bearers(no_account)
    with pytest.raises(NoToken, match="BECKON_SHIM_SERVICE_ACCOUNT"):
        await bearers.fetch("a")


def test_a_token_does_not_show_in_what_is_logged_of_it() -> None:
    assert "secret" not in repr(IssuedToken(b"secret", 1.0))


async def deliver(posts: BrokerPosts, server: Server) -> Ack:
    acknowledged: asyncio.Future[Ack] = asyncio.get_running_loop().create_future()
    posts.post(Target(server.url, audience="a"), [], b"{}", acknowledged.set_result)
    return await asyncio.wait_for(acknowledged, PATIENCE)


@pytest.fixture
async def broker_server(broker: Server) -> Server:
    """The server behind the Broker's address; `broker` is its address in the API server."""
    return broker
