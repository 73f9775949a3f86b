"""Changes of folders: seen by a notification where there are any, and by a look every now and then."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from beckon_sources import folders as folder_changes
from beckon_sources.folders import ticks
from tests.patience import PATIENCE
from tests.sources.writing import an_object, mount, write


@asynccontextmanager
async def following(*folders: Path) -> AsyncIterator[asyncio.Event]:
    """Follow folders; the event is set at every tick."""
    came = asyncio.Event()

    async def follow() -> None:
        async with aclosing(ticks(folders)) as found:
            async for _ in found:
                came.set()

    task = asyncio.create_task(follow())
    try:
        yield came
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def wait_for_change(came: asyncio.Event) -> None:
    came.clear()
    await asyncio.wait_for(came.wait(), PATIENCE)


async def until_it_watches(came: asyncio.Event, folder: Path) -> None:
    """Make changes until one is noticed, then let the others pass."""
    async with asyncio.timeout(PATIENCE):
        while not came.is_set():
            write(folder / "probe.yaml", an_object("probe"))
            await asyncio.sleep(0.02)
    while came.is_set():
        came.clear()
        await asyncio.sleep(0.5)  # longer than changes are gathered for


async def test_each_kind_of_change_is_notified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_changes, "_RESYNC_MS", 60_000)  # no look: only a notification shows a change
    file, sub = tmp_path / "a.yaml", tmp_path / "sub"
    sub.mkdir()
    mount(tmp_path, "..1", an_object("m"))
    kinds: list[Callable[[], object]] = [
        lambda: write(file, an_object("a")),
        lambda: write(file, an_object("b")),
        lambda: file.rename(tmp_path / "b.yaml"),
        (tmp_path / "b.yaml").unlink,
        lambda: write(sub / "c.json", an_object("c")),
        lambda: mount(tmp_path, "..2"),
    ]
    async with following(tmp_path) as came:
        await until_it_watches(came, tmp_path)
        for change in kinds:
            change()
            await wait_for_change(came)


async def test_without_a_change_a_look_is_taken_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_changes, "_RESYNC_MS", 60)
    async with following(tmp_path) as came:
        await wait_for_change(came)
        await wait_for_change(came)


async def test_a_folder_that_is_not_there_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(folder_changes, "_RESYNC_MS", 60)
    async with following(tmp_path / "later") as came:
        await wait_for_change(came)
        await wait_for_change(came)

    assert "looking every second instead" in caplog.text


def test_a_look_is_taken_every_second() -> None:
    assert folder_changes._RESYNC_MS == 1000
