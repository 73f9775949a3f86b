"""Requests to the API server as they are sent, and its answers as they are read, good and bad."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from beckon_sources import api_client
from beckon_sources.api_client import STRATEGIC_MERGE_PATCH, ApiClient
from beckon_sources.api_types import ApiAccess, Collection, Refused, Unreachable, is_temporary, object_path
from tests.sources.api_server import FixedCredentials

TOOLS = Collection("beckon.dev/v1alpha1", "tools", "shop")
TOOL = object_path("beckon.dev/v1alpha1", "tools", "shop", "a.tool")
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Recorder:
    """The requests, and the answers to them."""

    answer: Answer
    requests: list[web.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    async def take(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.bodies.append(await request.read())
        return await self.answer(request)


@asynccontextmanager
async def recorder(answer: Answer, prefix: str = "") -> AsyncIterator[tuple[Recorder, ApiClient]]:
    recording = Recorder(answer)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", recording.take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}{prefix}"
    access = FixedCredentials(ApiAccess(url, "Bearer a-token"))
    try:
        async with ApiClient(access, "beckon-test", answer_seconds=0.5) as client:
            yield recording, client
    finally:
        await runner.cleanup()


async def ok(_: web.Request) -> web.Response:
    return web.json_response({"metadata": {"resourceVersion": "7"}})


def with_body(body: bytes, status: int = 200) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=body, status=status)

    return answer


def with_lines(*lines: bytes, end: Callable[[web.StreamResponse], Awaitable[None]] | None = None) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write(line)
            await asyncio.sleep(0)
        if end is not None:
            await end(response)
        return response

    return answer


def event(change: str, /, **document: Any) -> bytes:
    return json.dumps({"type": change, "object": document}).encode() + b"\n"


async def test_each_write_has_the_method_and_the_type_that_the_api_server_takes() -> None:
    async with recorder(ok) as (server, client):
        await client.create(object_path("v1", "secrets", "shop"), {"kind": "Secret"})
        await client.replace(TOOL, {"kind": "Tool"})
        await client.patch(f"{TOOL}/status", {"status": {}})
        await client.patch(TOOL, {"webhooks": []}, STRATEGIC_MERGE_PATCH)
        await client.delete(TOOL, "uid-1", "12")

    sent = [(one.method, one.path, one.headers["content-type"]) for one in server.requests]
    tool = "/apis/beckon.dev/v1alpha1/namespaces/shop/tools/a.tool"
    assert sent == [
        ("POST", "/api/v1/namespaces/shop/secrets", "application/json"),
        ("PUT", tool, "application/json"),
        ("PATCH", f"{tool}/status", "application/merge-patch+json"),
        ("PATCH", tool, "application/strategic-merge-patch+json"),
        ("DELETE", tool, "application/json"),
    ]
    assert json.loads(server.bodies[-1])["preconditions"] == {"uid": "uid-1", "resourceVersion": "12"}
    assert {one.headers["user-agent"] for one in server.requests} == {"beckon-test"}
    assert {one.headers["authorization"] for one in server.requests} == {"Bearer a-token"}


async def test_a_number_of_more_than_64_bits_is_written_as_it_is() -> None:
    async with recorder(ok) as (server, client):
        await client.replace(TOOL, {"maximum": 2**70})

    assert json.loads(server.bodies[0]) == {"maximum": 2**70}


async def test_a_list_is_read_page_by_page_and_its_token_arrives_as_it_was() -> None:
    token = "eyJ2IjoibWV0YSJ9+/=%20&"

    async def answer(request: web.Request) -> web.Response:
        more = "" if request.query.get("continue") else token
        return web.json_response({"metadata": {"resourceVersion": "9", "continue": more}, "items": [{}]})

    async with recorder(answer) as (server, client):
        first = await client.list_page(TOOLS)
        second = await client.list_page(TOOLS, first.rest, limit=500, metadata_only=True)

    assert (first.rest, second.rest, second.version) == (token, "", "9")
    assert dict(server.requests[0].query) == {"limit": "250"}
    assert dict(server.requests[1].query) == {"limit": "500", "continue": token}
    assert server.requests[0].headers["accept"] == "application/json"
    assert "as=PartialObjectMetadataList" in server.requests[1].headers["accept"]


async def test_an_api_server_behind_a_path_is_reached() -> None:
    async with recorder(ok, "/k8s/clusters/c-1") as (server, client):
        await client.get(object_path("v1", "namespaces", name="shop"))

    assert server.requests[0].path == "/k8s/clusters/c-1/api/v1/namespaces/shop"


@pytest.mark.parametrize(
    ("status", "body", "said", "temporary"),
    [
        (403, b'{"kind": "Status", "message": "tools is forbidden"}', "tools is forbidden (403)", False),
        (409, b'{"kind": "Status", "message": "the object has been modified"}', "modified (409)", False),
        (429, b'{"message": "too many requests"}', "too many requests (429)", True),
        (503, b"<html>no upstream</html>", "answered with an error (503)", True),
        (502, b"", "answered with an error (502)", True),
        (403, json.dumps({"message": "x" * 5000}).encode(), "x" * 300 + " (403)", False),
    ],
    ids=["forbidden", "conflict", "busy", "proxy", "empty", "long"],
)
async def test_an_error_is_reported_in_the_servers_words(
    status: int, body: bytes, said: str, *, temporary: bool
) -> None:
    async with recorder(with_body(body, status)) as (_, client):
        with pytest.raises(Refused) as caught:
            await client.get(TOOL)

    assert str(caught.value).endswith(said)
    assert caught.value.status == status
    assert is_temporary(caught.value) is temporary


async def test_an_object_that_is_not_there_is_none_and_any_other_refusal_an_error() -> None:
    async with recorder(with_body(b"{}", 404)) as (_, client):
        assert await client.find(TOOL) is None
    async with recorder(with_body(b"{}", 403)) as (_, client):
        with pytest.raises(Refused):
            await client.find(TOOL)
    async with recorder(ok) as (_, client):
        assert await client.find(TOOL) == {"metadata": {"resourceVersion": "7"}}


async def test_a_redirect_is_not_followed_with_the_token() -> None:
    async def answer(_: web.Request) -> web.Response:
        raise web.HTTPFound("/elsewhere")

    async with recorder(answer) as (server, client):
        with pytest.raises(Refused, match=r"\(302\)"):
            await client.get(TOOL)

    assert len(server.requests) == 1


async def test_what_is_no_object_of_json_is_no_answer() -> None:
    for body in (b"[]", b"", b"<html>"):
        async with recorder(with_body(body)) as (_, client):
            with pytest.raises(Unreachable, match="no JSON object"):
                await client.get(TOOL)


async def test_an_answer_that_does_not_come_is_given_up() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b'{"kind":')
        await asyncio.sleep(5)
        return response

    async with recorder(answer) as (_, client):
        with pytest.raises(Unreachable, match=r"(?i)timeout"):
            await client.get(TOOL)


async def test_an_answer_that_breaks_off_is_none() -> None:
    async def cut(response: web.StreamResponse) -> None:
        transport = server.requests[-1].transport
        assert transport is not None
        transport.abort()

    async with recorder(with_lines(b'{"kind":', end=cut)) as (server, client):
        with pytest.raises(Unreachable):
            await client.get(TOOL)


async def test_a_port_that_no_one_listens_at_is_unreachable() -> None:
    async with ApiClient(FixedCredentials(ApiAccess("http://127.0.0.1:1")), "beckon-test") as client:
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
            await client.get(TOOL)
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
            async with client.watch(TOOLS, "1", 5):
                pass


async def watch_all(client: ApiClient) -> list[tuple[str, str]]:
    async with client.watch(TOOLS, "5", 300) as changes:
        return [(change.type, change.version) async for change in changes]


async def test_a_watch_asks_for_bookmarks_after_a_version_and_for_a_time() -> None:
    async with recorder(with_lines()) as (server, client):
        assert await watch_all(client) == []

    query = dict(server.requests[0].query)
    assert query == {
        "watch": "true",
        "resourceVersion": "5",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "300",
    }


async def test_the_lines_of_a_watch_may_be_long_and_arrive_in_any_parts() -> None:
    long = event("ADDED", metadata={"resourceVersion": "6"}, text="x" * 5_000_000)
    last = event("BOOKMARK", metadata={"resourceVersion": "8"})
    both = event("MODIFIED", metadata={"resourceVersion": "7"}) + last[:9]
    async with recorder(with_lines(long[:70_000], long[70_000:], both, last[9:])) as (_, client):
        assert await watch_all(client) == [("ADDED", "6"), ("MODIFIED", "7"), ("BOOKMARK", "8")]


async def test_a_version_that_is_too_old_is_reported_before_or_inside_a_watch() -> None:
    status = {"kind": "Status", "code": 410, "message": "too old resource version"}
    for answer in (with_lines(event("ERROR", **status)), with_body(json.dumps(status).encode(), 410)):
        async with recorder(answer) as (_, client):
            with pytest.raises(Refused, match="too old resource version") as caught:
                await watch_all(client)
        assert caught.value.gone


async def test_a_silent_watch_ends_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stay(_: web.StreamResponse) -> None:
        await asyncio.sleep(5)

    monkeypatch.setattr(api_client, "_WATCH", aiohttp.ClientTimeout(total=None, sock_read=0.3))
    line = event("ADDED", metadata={"resourceVersion": "6"})
    async with recorder(with_lines(line, end=stay)) as (_, client):
        assert await watch_all(client) == [("ADDED", "6")]


async def test_a_watch_that_breaks_off_is_unreachable() -> None:
    async def cut(_: web.StreamResponse) -> None:
        transport = server.requests[-1].transport
        assert transport is not None
        transport.abort()

    async with recorder(with_lines(end=cut)) as (server, client):
        with pytest.raises(Unreachable):
            await watch_all(client)
