"""Stored runs as resources of MCP: the caller's own, of the agent of the address, with their files."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import httpx2
import pytest
import pytest_asyncio
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import BlobResourceContents, TextResourceContents

from beckon_contract.api_keys import new_entry, new_key
from tests.agent.auth.closed_service import ClosedService, bearing, checking, closed_service, terms
from tests.agent.event_platform import EventPlatform
from tests.agent.mcp.mcp_server import LEGACY, MODERN
from tests.agent.scripted_model import asks_for, says

pytestmark = pytest.mark.asyncio(loop_scope="module")
both = pytest.mark.parametrize("mode", [LEGACY, MODERN])


@dataclass(slots=True)
class Archive:
    """The service, and the keys of two callers."""

    service: ClosedService
    keys: dict[str, str]

    async def run(self, caller: str = "mine", agent: str = "beckon", **body: Any) -> str:
        """Store a run of a caller, and return its id."""
        answer = await self.service.http.post(
            "/v1/responses",
            json={"model": agent, "input": "Draw me a picture", **body},
            headers=bearing(self.keys[caller]),
        )
        assert answer.status_code == 200, answer.text
        listed = await self.service.http.get("/runs?limit=1", headers=bearing(self.keys[caller]))
        run_id: str = listed.json()["data"][0]["id"]
        return run_id

    @asynccontextmanager
    async def client(self, mode: str, caller: str = "mine", path: str = "/mcp") -> AsyncIterator[Client]:
        """Connect the SDK's client of one revision."""
        async with httpx2.AsyncClient(headers=bearing(self.keys[caller])) as http:
            transport = streamable_http_client(
                f"{str(self.service.http.base_url).rstrip('/')}{path}", http_client=http
            )
            async with Client(transport, mode="legacy" if mode == LEGACY else mode) as client:
                yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def archive(
    platform: EventPlatform, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Archive]:
    keys = {name: new_key() for name in ("mine", "theirs")}
    file = tmp_path_factory.mktemp("access") / "keys.jsonl"
    file.write_text("".join(f"{new_entry(key, name).line()}\n" for name, key in keys.items()))
    async with aiohttp.ClientSession() as session:
        checks = checking(None, file, session)
        async with closed_service(platform, {"beckon": terms(), "other": terms()}, checks) as service:
            yield Archive(service, keys)


@both
async def test_a_run_is_a_resource_with_its_steps_and_its_files(archive: Archive, mode: str) -> None:
    archive.service.model.script[:] = [asks_for(("test_picture", {})), says("Here it is.")]
    run = await archive.run()
    uri = f"beckon://runs/{run}"

    async with archive.client(mode) as client:
        listed = (await client.list_resources()).resources
        read = (await client.read_resource(uri)).contents
        document, picture = read
        assert isinstance(document, TextResourceContents)
        assert isinstance(picture, BlobResourceContents)
        again = (await client.read_resource(str(picture.uri))).contents
        templates = (await client.list_resource_templates()).resource_templates

    first = listed[0]
    assert (str(first.uri), first.title, first.mime_type) == (uri, "Draw me a picture", "application/json")
    whole = await archive.service.http.get(f"/runs/{run}", headers=bearing(archive.keys["mine"]))
    assert json.loads(document.text) == whole.json()
    assert (picture.mime_type, base64.b64decode(picture.blob)) == ("image/png", b"\x89PNG" * 300)
    assert again == [picture]
    assert [one.uri_template for one in templates] == [
        "beckon://runs/{run}",
        "beckon://runs/{run}/files/{file}",
    ]


@both
async def test_the_runs_of_others_and_of_other_agents_do_not_exist(archive: Archive, mode: str) -> None:
    archive.service.model.script[:] = [says("One."), says("Two.")]
    theirs, elsewhere = await archive.run("theirs"), await archive.run(agent="other")

    async with archive.client(mode) as client:
        listed = {str(one.uri) for one in (await client.list_resources()).resources}
        for run in (theirs, elsewhere):
            with pytest.raises(MCPError, match="there is no resource"):
                await client.read_resource(f"beckon://runs/{run}")
    async with archive.client(mode, path="/mcp/other") as client:
        others = {str(one.uri) for one in (await client.list_resources()).resources}

    assert not listed & {f"beckon://runs/{run}" for run in (theirs, elsewhere)}
    assert f"beckon://runs/{elsewhere}" in others


@both
@pytest.mark.parametrize(
    "uri", ["beckon://runs/none", "file:///etc/passwd", "beckon://runs/", "beckon://runs/{run}/files/none.1"]
)
async def test_an_unknown_resource_is_an_error_of_its_revision(archive: Archive, mode: str, uri: str) -> None:
    archive.service.model.script[:] = [says("One.")]
    run = await archive.run()

    async with archive.client(mode) as client:
        with pytest.raises(MCPError, match="there is no resource") as caught:
            await client.read_resource(uri.replace("{run}", run))

    assert caught.value.error.code == (-32602 if mode == MODERN else -32002)


@both
async def test_a_long_list_has_pages(archive: Archive, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beckon_agent.api.mcp.resources._PAGE", 2)
    archive.service.model.script[:] = [says("Yes.") for _ in range(3)]
    runs = [await archive.run(agent="other") for _ in range(3)]

    async with archive.client(mode, path="/mcp/other") as client:
        first = await client.list_resources()
        second = await client.list_resources(cursor=first.next_cursor)
        with pytest.raises(MCPError, match="begin with the newest run"):
            await client.list_resources(cursor="none")

    found = [str(one.uri).rpartition("/")[2] for one in (*first.resources, *second.resources)]
    assert found[:3] == runs[::-1]
    assert len(first.resources) == 2
