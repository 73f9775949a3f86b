"""A mirrored collection: pages, watches, expired versions, hang-ups, refusals, a server that is gone."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

import pytest
from aiohttp import web

from beckon_agent.agents.kubernetes import CURES
from beckon_sources.api_types import Collection, Document
from beckon_sources.reflector import Reflector
from beckon_sources.watch_status import Contact
from tests.agent.cluster_objects import tool
from tests.patience import eventually
from tests.sources.api_server import ApiServer, api_server


@dataclass
class Seen:
    """A sink that records its changes; it fails at an object named `stumble`."""

    objects: dict[tuple[str, str], str] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)

    def put(self, document: Document) -> None:
        metadata = document["metadata"]
        self.shown.append(f"put {metadata['name']}")
        if metadata["name"] == "stumble":
            raise RuntimeError("a mistake of ours")
        self.objects[metadata["namespace"], metadata["name"]] = document["spec"]["description"]

    def drop(self, namespace: str, name: str) -> None:
        self.shown.append(f"drop {name}")
        del self.objects[namespace, name]

    @property
    def names(self) -> set[str]:
        return {name for _, name in self.objects}


@dataclass
class Mirror:
    """A running reflector, its changes, and the state of its connection."""

    server: ApiServer
    seen: Seen
    contact: Contact

    async def shows(self, *names: str) -> None:
        """Wait until exactly these are there."""

        async def as_wanted() -> bool:
            return self.seen.names == set(names) and self.contact.complete

        await eventually(as_wanted)

    async def is_connected(self, *, connected: bool) -> None:
        async def as_wanted() -> bool:
            return self.contact.connected is connected

        await eventually(as_wanted)


class StartMirror(Protocol):
    def __call__(
        self, server: ApiServer, namespace: str | None = "default"
    ) -> AbstractAsyncContextManager[Mirror]: ...


@pytest.fixture
def mirror() -> StartMirror:
    @asynccontextmanager
    async def start(server: ApiServer, namespace: str | None = "default") -> AsyncIterator[Mirror]:
        seen, contact = Seen(), Contact(CURES)
        collection = Collection("beckon.dev/v1alpha1", "tools", namespace)
        client = server.client()
        task = asyncio.create_task(Reflector(client, collection, seen, contact).run())
        try:
            yield Mirror(server, seen, contact)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await client.close()

    return start


async def test_a_collection_is_listed_in_pages_and_then_watched(mirror: StartMirror) -> None:
    async with api_server() as server:
        for number in range(600):
            await server.put("tools", tool(f"t{number}"))
        await server.put("tools", tool("elsewhere", "team-a"))
        async with mirror(server) as mirrored:
            await mirrored.shows(*(f"t{number}" for number in range(600)))
            await server.put("tools", tool("late"))
            await server.delete("tools", "t7")
            await mirrored.shows("late", *(f"t{number}" for number in range(600) if number != 7))

    assert len(server.lists) == 3, "600 objects in pages of 250"
    assert len(mirrored.seen.shown) == 602
    assert set(server.lists) == {"/apis/beckon.dev/v1alpha1/namespaces/default/tools"}


async def test_all_namespaces_are_one_collection(mirror: StartMirror) -> None:
    async with api_server() as server:
        await server.put("tools", tool("here"))
        await server.put("tools", tool("there", "team-a"))
        async with mirror(server, None) as mirrored:
            await mirrored.shows("here", "there")

    assert server.lists == ["/apis/beckon.dev/v1alpha1/tools"]


async def test_a_watch_that_is_cut_goes_on_where_it_was(mirror: StartMirror) -> None:
    async with api_server() as server:
        await server.put("tools", tool("a"))
        async with mirror(server) as mirrored:
            await mirrored.shows("a")
            await server.hang_up()
            await server.put("tools", tool("b"))
            await mirrored.shows("a", "b")

    assert len(server.lists) == 1
    assert mirrored.seen.shown == ["put a", "put b"]


async def test_an_expired_version_is_listed_anew_and_missed_deletions_are_found(mirror: StartMirror) -> None:
    async with api_server() as server:
        for name in ("a", "b", "c"):
            await server.put("tools", tool(name))
        async with mirror(server) as mirrored:
            await mirrored.shows("a", "b", "c")
            await server.hang_up()
            await server.delete("tools", "b")
            await server.put("tools", tool("c", description="Changed."))
            server.forget_history()
            await mirrored.shows("a", "c")
            await server.put("tools", tool("d"))
            await mirrored.shows("a", "c", "d")

    assert mirrored.seen.shown == ["put a", "put b", "put c", "put c", "drop b", "put d"]
    assert mirrored.seen.objects["default", "c"] == "Changed."


async def test_what_is_known_stays_while_the_server_is_away_and_is_made_up_for_afterwards(
    mirror: StartMirror, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="beckon_sources")
    server = ApiServer()
    async with api_server(server):
        await server.put("tools", tool("a"))
        started = mirror(server)
        mirrored = await started.__aenter__()
        await mirrored.shows("a")
    try:
        await mirrored.is_connected(connected=False)
        await eventually(lambda: _tried_again(mirrored))
        assert mirrored.seen.names == {"a"}
        assert mirrored.contact.complete
        await server.put("tools", tool("b"))
        async with api_server(server):
            await mirrored.shows("a", "b")
            await mirrored.is_connected(connected=True)
            assert mirrored.contact.age < 5
    finally:
        await started.__aexit__(None, None, None)

    away = [record for record in caplog.records if "cannot follow" in record.message]
    back = [record for record in caplog.records if "answers again" in record.message]
    assert 1 <= len(away) <= 2, "a cut watch and a refused connection are reported once each"
    assert "what is known stays in force" in away[0].message
    assert len(back) == 1


async def _tried_again(mirrored: Mirror) -> bool:
    return mirrored.contact.age > 0.5


@pytest.mark.parametrize(
    ("status", "said", "cure"),
    [
        (403, "agents may not list tools", "give the service account the role beckon-agent"),
        (404, "could not find the requested resource", "are Beckon's resource definitions installed?"),
        (500, "etcd is ill", "nothing of it is known yet"),
    ],
    ids=["forbidden", "no-definitions", "trouble"],
)
async def test_a_refusal_is_reported_once_with_the_servers_words_and_the_cure(
    status: int, said: str, cure: str, mirror: StartMirror, caplog: pytest.LogCaptureFixture
) -> None:
    refusing = True

    def refuse(_: web.Request) -> tuple[int, str] | None:
        return (status, said) if refusing else None

    async with api_server() as server:
        server.refuse = refuse
        await server.put("tools", tool("a"))
        async with mirror(server) as mirrored:

            async def requested_three_times() -> bool:
                return len(server.lists) >= 3

            await eventually(requested_three_times)
            assert not mirrored.contact.complete
            assert not mirrored.contact.connected
            refusing = False
            await mirrored.shows("a")

    shown = [record.message for record in caplog.records if "cannot follow" in record.message]
    assert len(shown) == 1
    assert said in shown[0]
    assert cure in shown[0]


async def test_a_list_that_expires_between_its_pages_begins_anew(mirror: StartMirror) -> None:
    expired: list[str] = []

    def refuse(request: web.Request) -> tuple[int, str] | None:
        if request.query.get("continue") and not expired:
            expired.append(request.query["continue"])
            return 410, "the provided continue parameter is too old"
        return None

    async with api_server() as server:
        server.refuse = refuse
        for number in range(300):
            await server.put("tools", tool(f"t{number}"))
        async with mirror(server) as mirrored:
            await mirrored.shows(*(f"t{number}" for number in range(300)))

    assert len(server.lists) == 4
    assert len(mirrored.seen.shown) == 300


async def test_a_version_that_the_server_does_not_reach_is_given_up(mirror: StartMirror) -> None:
    """As after etcd was restored from a backup: the version lies in the future, and every watch fails."""

    def refuse(request: web.Request) -> tuple[int, str] | None:
        return (504, "Timeout: Too large resource version") if request.query.get("watch") else None

    async with api_server() as server:
        await server.put("tools", tool("a"))
        async with mirror(server) as mirrored:
            await mirrored.shows("a")
            server.refuse = refuse
            await server.hang_up()

            async def listed_anew() -> bool:
                return len(server.lists) >= 2

            await eventually(listed_anew)


async def test_an_object_that_we_stumble_over_stops_no_other(
    mirror: StartMirror, caplog: pytest.LogCaptureFixture
) -> None:
    async with api_server() as server:
        for name in ("a", "stumble", "z"):
            await server.put("tools", tool(name))
        async with mirror(server) as mirrored:
            await mirrored.shows("a", "z")
            await server.put("tools", tool("later"))
            await mirrored.shows("a", "later", "z")

    assert "tools: default/stumble is passed over" in caplog.text


async def test_a_watch_that_is_cut_goes_on_after_the_last_bookmark(mirror: StartMirror) -> None:
    """Else a quiet collection would have to be listed anew, once its last change is too old."""
    async with api_server() as server:
        await server.put("tools", tool("a"))
        async with mirror(server) as mirrored:
            await mirrored.shows("a")
            begun, sent = server.version, time.monotonic()
            await server.bookmark()

            async def has_received() -> bool:
                return time.monotonic() - mirrored.contact.age > sent

            await eventually(has_received)
            server.oldest = begun + 1
            await server.hang_up()
            await server.put("tools", tool("b"))
            await mirrored.shows("a", "b")

    assert server.watched_from == [begun, begun + 1]
    assert len(server.lists) == 1


async def test_text_that_some_take_for_the_end_of_a_line_arrives_whole(mirror: StartMirror) -> None:
    odd = "one\u0085two\u2028three\x1cfour"
    async with api_server() as server, mirror(server) as mirrored:
        await server.put("tools", tool("listed", description=odd))
        await mirrored.shows("listed")
        await server.put("tools", tool("watched", description=odd))
        await mirrored.shows("listed", "watched")

    assert set(mirrored.seen.objects.values()) == {odd}
    assert len(server.lists) == 1
