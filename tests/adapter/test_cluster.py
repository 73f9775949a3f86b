"""EventTypes of the API server: found, changed, gone, and not forgotten when it is away."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from beckon_adapter.app import Backends
from beckon_adapter.cluster import ClusterSource
from beckon_adapter.declaration import RuleRegistry, declare_tool, has_rule
from tests.adapter.plain_api import egress_to
from tests.patience import until
from tests.sources.api_server import ApiServer, api_server_of, refusing


def event_type(name: str, url: str = "https://a.example/", namespace: str = "shop") -> dict[str, Any]:
    """Return an EventType as a list of the API server holds it: without apiVersion and kind."""
    rule = {"beckon.dev/http": json.dumps({"url": url})} if url else {}
    return {
        "metadata": {"name": name, "namespace": namespace, "annotations": rule},
        "spec": {"type": f"type.{name}", "description": "Ask."},
    }


def event_types_at(*event_types: dict[str, Any]) -> contextlib.AbstractAsyncContextManager[ApiServer]:
    return api_server_of("eventtypes", *event_types)


@contextlib.asynccontextmanager
async def following(api: ApiServer, *namespaces: str) -> AsyncIterator[tuple[ClusterSource, RuleRegistry]]:
    carrying = Backends(egress_to())
    book = RuleRegistry(has_rule, lambda resource: declare_tool(resource, carrying.by_annotation))
    source = ClusterSource(api.client(), namespaces or ("shop",), book)
    task = asyncio.create_task(source.follow())
    try:
        yield source, book
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await source.close()
        await carrying.close()


async def test_eventtypes_with_a_rule_are_served_as_they_come_change_and_go() -> None:
    async with (
        event_types_at(event_type("a"), event_type("plain", "")) as api,
        following(api) as (source, book),
    ):
        await until(lambda: source.ready and api.watches > 0)
        assert len(book) == 1
        assert book.find("type.a", "shop") is not None

        await api.put("eventtypes", event_type("b"))
        await until(lambda: book.find("type.b", "shop") is not None)
        await api.put("eventtypes", event_type("b", ""))
        await until(lambda: book.find("type.b", "shop") is None)
        await api.delete("eventtypes", "a", "shop")
        await until(lambda: len(book) == 0)


async def test_only_the_namespaces_that_it_serves_are_read() -> None:
    others = (
        event_type("a", namespace="shop"),
        event_type("b", namespace="bank"),
        event_type("c", namespace="x"),
    )
    async with event_types_at(*others) as api:
        async with following(api, "shop", "bank") as (source, book):
            await until(lambda: source.ready)
            assert (len(book), book.find("type.c", "")) == (2, None)
        async with following(api, "*") as (source, book):
            await until(lambda: source.ready)
            assert len(book) == 3


async def test_what_was_missed_is_found_when_the_list_is_read_anew() -> None:
    async with (
        event_types_at(event_type("a"), event_type("b")) as api,
        following(api) as (source, book),
    ):
        await until(lambda: source.ready and api.watches > 0)
        await api.hang_up()
        await api.delete("eventtypes", "a", "shop")
        api.forget_history()
        await until(lambda: len(book) == 1)

    assert len(api.lists) == 2


async def test_what_is_known_stays_in_force_while_the_api_server_refuses(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with event_types_at(event_type("a")) as api, following(api) as (source, book):
        await until(lambda: source.ready and api.watches > 0)
        api.refuse = refusing("eventtypes is forbidden")
        await api.hang_up()
        await until(lambda: "eventtypes is forbidden" in caplog.text)
        assert book.find("type.a", "shop") is not None

        api.refuse = lambda _: None
        await api.put("eventtypes", event_type("b"))
        await until(lambda: book.find("type.b", "shop") is not None)


async def test_it_is_not_ready_before_everything_was_read_once() -> None:
    async with event_types_at(event_type("a")) as api:
        api.refuse = refusing("not yet")
        async with following(api) as (source, book):
            await asyncio.sleep(0)
            assert not source.ready
            api.refuse = lambda _: None
            await until(lambda: source.ready)
            assert len(book) == 1
