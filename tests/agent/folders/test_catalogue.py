"""The catalogue of a folder, followed while it changes, as `GET /tools` would tell it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from beckon_agent.agents.folder import FolderSource
from beckon_contract.catalogue.builder import CatalogueBuilder
from tests.agent.event_platform import described
from tests.patience import until
from tests.sources.writing import mount

CALLER = "/beckon/agents/default/beckon"
SERVICE: dict[str, Any] = {
    "apiVersion": "serving.knative.dev/v1",
    "kind": "Service",
    "metadata": {"name": "svc"},
    "status": {"address": {"url": "http://127.0.0.1:9"}},
}


def a_tool(name: str, **annotations: str) -> list[dict[str, Any]]:
    return [*described(name, "svc", **annotations), SERVICE]


def write(path: Path, *objects: dict[str, Any]) -> None:
    path.write_text("".join(f"---\n{json.dumps(one)}\n" for one in objects))


@asynccontextmanager
async def following(*folders: Path) -> AsyncIterator[FolderSource]:
    source = FolderSource(folders, CALLER)
    watching = asyncio.create_task(source.watch())
    try:
        yield source
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def reasons(source: FolderSource) -> list[str]:
    return [refusal.reason for refusal in source.current.refusals]


async def test_tools_come_change_and_go_with_their_files(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    async with following(tmp_path) as source:
        assert dict(source.current.tools) == {}
        write(file, *a_tool("one"))
        await until(lambda: list(source.current.tools) == ["one"])
        write(file, *a_tool("one"), *a_tool("two"))
        await until(lambda: list(source.current.tools) == ["one", "two"])
        before = source.current
        file.rename(tmp_path / "b.yaml")
        await until(lambda: source.current is not before)
        assert list(source.current.tools) == ["one", "two"]
        (tmp_path / "b.yaml").unlink()
        await until(lambda: dict(source.current.tools) == {})


async def test_a_broken_edit_takes_no_tool_away_and_is_shown_as_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", *a_tool("one"))
    async with following(tmp_path) as source:
        (tmp_path / "a.yaml").write_text("kind: [oops")
        await until(lambda: reasons(source) == ["Unreadable"])

        assert list(source.current.tools) == ["one"]
        assert "a.yaml" in source.current.refusals[0].origin
        write(tmp_path / "a.yaml", *a_tool("two"))
        await until(lambda: list(source.current.tools) == ["two"])
        assert reasons(source) == []


async def test_a_folder_may_appear_later(tmp_path: Path) -> None:
    later = tmp_path / "later"
    async with following(tmp_path, later) as source:
        later.mkdir()
        write(later / "a.yaml", *a_tool("one"))
        await until(lambda: list(source.current.tools) == ["one"])


async def test_a_mounted_configmap_is_followed_through_its_swap(tmp_path: Path) -> None:
    mount(tmp_path, "..1", *a_tool("one"))
    (tmp_path / "tools.yaml").symlink_to("..data/tools.yaml")
    async with following(tmp_path) as source:
        assert list(source.current.tools) == ["one"]
        mount(tmp_path, "..2", *a_tool("two"))
        await until(lambda: list(source.current.tools) == ["two"])


async def test_one_new_tool_among_thousands_is_there_within_the_same_time(tmp_path: Path) -> None:
    (tmp_path / "service.json").write_text(json.dumps(SERVICE))
    for number in range(2000):
        write(tmp_path / f"{number}.json.yaml", *described(f"tool-{number}", "svc"))
    async with following(tmp_path) as source:
        assert len(source.current.tools) == 2000
        write(tmp_path / "new.yaml", *described("brand.new", "svc"))
        await until(lambda: "brand_new" in source.current.tools)


async def test_a_trigger_without_an_address_behind_it_is_no_route(tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", *described("one", "svc"))
    async with following(tmp_path) as source:
        assert reasons(source) == ["TriggerNotReady"]
        write(tmp_path / "b.yaml", SERVICE)
        await until(lambda: list(source.current.tools) == ["one"])


async def test_a_tool_that_is_called_directly_needs_an_address_and_no_trigger(tmp_path: Path) -> None:
    declared, _ = described("one", "svc", dispatch="direct")
    write(tmp_path / "a.yaml", declared, *a_tool("two"))
    async with following(tmp_path) as source:
        assert list(source.current.tools) == ["one", "two"]
        assert source.current.tools["one"].address == "http://127.0.0.1:9"
        assert source.current.tools["two"].address == ""
        write(tmp_path / "a.yaml", declared)
        await until(lambda: source.current.tools == {})
        (refusal,) = source.current.refusals
        assert (refusal.reason, refusal.event_type) == ("AddressUnknown", "one")
        assert refusal.field == "spec.reference"
        assert "Service default/svc (serving.knative.dev/v1) does not exist; create it" in refusal.message


async def test_an_error_while_reading_leaves_the_last_catalogue_and_the_next_change_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "a.yaml", *a_tool("one"))
    async with following(tmp_path) as source:
        with monkeypatch.context() as patched:

            def broken(*_: object) -> None:
                raise RecursionError

            patched.setattr(CatalogueBuilder, "build", broken)
            write(tmp_path / "b.yaml", *a_tool("two"))
            await until(lambda: "the last state stays in force" in caplog.text)
            assert list(source.current.tools) == ["one"]
        write(tmp_path / "c.yaml", *a_tool("three"))
        await until(lambda: list(source.current.tools) == ["one", "three", "two"])
