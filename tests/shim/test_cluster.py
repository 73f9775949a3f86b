"""Brokers of the API server: found, changed, lost, and not forgotten when it is away."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from beckon_shim.cluster import Cluster
from beckon_shim.service import WaitTimes
from tests.patience import PATIENCE, eventually, until
from tests.shim.brokers import broker, brokers_at
from tests.shim.support import Posted, Server, Shim, shim_in_front_of
from tests.sources.api_server import ApiServer, api_server, refusing


@contextlib.asynccontextmanager
async def shim_in(api: ApiServer, *namespaces: str) -> AsyncIterator[Shim]:
    cluster = Cluster(api.client(), namespaces, None)
    async with shim_in_front_of(
        cluster=cluster, brokers="cluster", waits=WaitTimes(without_preference=20)
    ) as shim:
        yield shim


async def ready(shim: Shim) -> tuple[int, str]:
    async with shim.client.get(shim.url + "/readyz") as answer:
        return answer.status, await answer.text()


async def until_ready(shim: Shim) -> None:
    async def is_ready() -> bool:
        return (await ready(shim))[0] == 200

    await eventually(is_ready)


async def problem(shim: Shim, path: str) -> tuple[int, str, str]:
    status, headers, body = await shim.call(path)
    assert headers["content-type"] == "application/problem+json"
    document = orjson.loads(body)
    return status, document["type"].rpartition("/")[2], document["detail"]


async def until_answered(shim: Shim, path: str, status: int) -> None:
    """Call until the answer has a status; on a busy machine a call may end before its post does."""

    async def is_answered() -> bool:
        return (await shim.call(path, prefer="wait=0.05"))[0] == status

    await eventually(is_answered)


@pytest.fixture
async def echo(broker: Server) -> Server:
    """A Broker that a test's shim knows by its status alone; calls to it end as time-outs."""
    return broker


async def test_a_call_goes_to_the_address_in_the_brokers_status(echo: Server) -> None:
    shown = broker("orders", url=f"{echo.url}/in/any/way?x=1")
    async with (
        brokers_at(shown, broker("x", "other", url="http://127.0.0.1:9")) as api,
        shim_in(api) as shim,
    ):
        await until_ready(shim)

        async def reply(posted: Posted) -> None:
            assert await shim.reply(posted.token, b"done") == 202

        echo.behaviour = reply
        assert (await shim.call("/shop/orders"))[::2] == (200, b"done")
        assert echo.posts[0].path == "/in/any/way"
        assert await shim.metric("beckon_shim_brokers") == 2


async def test_the_first_of_several_addresses_counts(echo: Server) -> None:
    shown = broker("orders", url="http://127.0.0.1:9/old")
    shown["status"]["addresses"] = [{"url": echo.url + "/first"}, {"url": "http://127.0.0.1:9"}]
    async with brokers_at(shown) as api, shim_in(api) as shim:
        await until_ready(shim)
        await until_answered(shim, "/shop/orders", 504)
        assert echo.posts[0].path == "/first"


async def test_an_unknown_broker_is_a_404_that_says_so() -> None:
    async with (
        brokers_at(broker("orders", url="http://127.0.0.1:9")) as api,
        shim_in(api, "shop") as shim,
    ):
        await until_ready(shim)
        status, slug, detail = await problem(shim, "/shop/other")
        assert (status, slug) == (404, "unknown-broker")
        assert "no Broker shop/other" in detail
        assert "BECKON_SHIM_NAMESPACES" in (await problem(shim, "/elsewhere/orders"))[2]
        assert (await problem(shim, "/shop"))[:2] == (404, "not-found")


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({}, "no status yet"),
        (
            {
                "conditions": [
                    {"type": "Ready", "status": "Unknown", "reason": "Later"},
                    {
                        "type": "Addressable",
                        "status": "False",
                        "reason": "NoEndpoints",
                        "message": "no one home",
                    },
                ]
            },
            "its condition Addressable is False, NoEndpoints: no one home",
        ),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, "publishes no status.address"),
        ({"address": {"url": "broker.svc"}}, "its address is 'broker.svc'; expected an absolute http"),
        ({"address": {"url": "http://bröker"}}, "other characters than ASCII"),
    ],
    ids=["no-status", "conditions", "no-address", "no-url", "not-ascii"],
)
async def test_a_broker_without_a_usable_address_is_a_503_with_its_condition(
    status: dict[str, Any], words: str
) -> None:
    shown = {**broker("orders"), "status": status}
    if not status:
        del shown["status"]
    async with brokers_at(shown) as api, shim_in(api) as shim:
        await until_ready(shim)
        code, slug, detail = await problem(shim, "/shop/orders")
        assert (code, slug) == (503, "broker-not-ready")
        assert "Broker shop/orders takes no events now: " in detail
        assert words in detail


async def test_changes_and_deletions_count_at_once(echo: Server) -> None:
    async with brokers_at(broker("orders")) as api, shim_in(api, "shop") as shim:
        await until_ready(shim)
        await until(lambda: api.watches == 1)
        await api.put("brokers", broker("orders", url=echo.url))
        await until_answered(shim, "/shop/orders", 504)
        await api.delete("brokers", "orders", "shop")
        await until_answered(shim, "/shop/orders", 404)
        assert len(api.lists) == 1


async def test_only_the_namespaces_named_are_followed(echo: Server) -> None:
    others = [broker("orders", name, url=echo.url) for name in ("one", "two", "three")]
    async with brokers_at(*others) as api, shim_in(api, "one", "two") as shim:
        await until_ready(shim)
        for name in ("one", "two"):
            await until_answered(shim, f"/{name}/orders", 504)
        assert (await shim.call("/three/orders"))[0] == 404
        assert len(api.lists) == 2


async def test_after_a_410_the_list_is_read_anew_and_ghosts_are_gone(echo: Server) -> None:
    async with (
        brokers_at(broker("ghost", url=echo.url), broker("kept", url=echo.url)) as api,
        shim_in(api, "shop") as shim,
    ):
        await until_ready(shim)
        await until(lambda: api.watches == 1)
        await api.hang_up()
        await api.delete("brokers", "ghost", "shop")
        api.forget_history()
        await until_answered(shim, "/shop/ghost", 404)
        await until_answered(shim, "/shop/kept", 504)
        await api.put("brokers", broker("new", url=echo.url))
        await until_answered(shim, "/shop/new", 504)


async def test_while_the_api_server_is_away_the_known_addresses_stay_in_force(echo: Server) -> None:
    async with contextlib.AsyncExitStack() as outer:
        async with brokers_at(broker("orders", url=echo.url)) as api:
            shim = await outer.enter_async_context(shim_in(api))
            await until_ready(shim)
            await until(lambda: api.watches == 1)
        await until_answered(shim, "/shop/orders", 504)
        assert (await ready(shim))[0] == 200
        await api.delete("brokers", "orders", "shop")
        await api.put("brokers", broker("new", url=echo.url))
        async with api_server(api):
            await until_answered(shim, "/shop/new", 504)
            assert (await shim.call("/shop/orders"))[0] == 404


async def test_readiness_waits_for_the_first_list_and_names_the_obstacle(echo: Server) -> None:
    async with brokers_at(broker("orders", url=echo.url)) as api:
        api.refuse = refusing('brokers is forbidden: User "shim" cannot list')
        async with shim_in(api, "shop") as shim:

            async def says_why() -> bool:
                return "forbidden" in (await ready(shim))[1]

            await eventually(says_why)
            assert (await ready(shim))[0] == 503
            status, slug, detail = await problem(shim, "/shop/orders")
            assert (status, slug) == (503, "starting")
            assert "cannot follow brokers in namespace shop: brokers is forbidden" in detail
            api.refuse = lambda _: None
            await until_ready(shim)
            await until_answered(shim, "/shop/orders", 504)


async def test_a_shim_that_follows_a_cluster_stops_at_once(echo: Server) -> None:
    async with brokers_at(broker("orders", url=echo.url)) as api, shim_in(api) as shim:
        await until_ready(shim)
        await until(lambda: api.watches == 1)
        shim.stop.set()
        await asyncio.wait_for(shim.running, PATIENCE)
