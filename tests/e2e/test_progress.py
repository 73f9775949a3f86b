"""What a tool reports while it works reaches anyone who waits: an MCP client, a person at the terminal."""

import os
import pty
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from mcp import Client

from tests.e2e.local_platform import LocalPlatform, clean_environment
from tests.e2e.sdk_tool import platform_with
from tests.e2e.terminal import Terminal

PAGES = '''
import asyncio
from pathlib import Path

from beckon_tools import Progress, tool


@tool(type="pages.write")
async def write_pages(pages: int, progress: Progress, heard: str = "heard") -> str:
    """Write pages, each after the test has read the report of the one before, and has made a file."""
    for page in range(1, pages + 1):
        await progress.report(page, pages, f"page {page}")
        while not (Path(heard) / str(page)).exists():
            await asyncio.sleep(0.01)
    return f"{pages} pages"
'''


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPlatform]:
    """A platform with a tool of the SDK's that reports every page."""
    with platform_with(tmp_path_factory.mktemp("sdk"), PAGES, "write_pages") as running:
        yield running


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_an_mcp_client_gets_the_tool_s_own_numbers(
    platform: LocalPlatform, tmp_path: Path, mode: str
) -> None:
    shown: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        shown.append((progress, total, message))
        (tmp_path / f"{progress:.0f}").touch()

    async with Client(f"{platform.url}/mcp", mode=mode) as client:
        result = await client.call_tool(
            "pages_write", {"pages": 3, "heard": str(tmp_path)}, progress_callback=note
        )

    assert "3 pages" in str(result.content)
    assert [one for one in shown if one[2] and one[2].startswith("page")] == [
        (1, 3, "page 1"),
        (2, 3, "page 2"),
        (3, 3, "page 3"),
    ]


def test_beckon_call_shows_it_on_the_terminal(platform: LocalPlatform, tmp_path: Path) -> None:
    with beckon_on_a_terminal(platform, "call", "pages_write", "pages=3", f"heard={tmp_path}") as terminal:
        for page in (1, 2, 3):
            terminal.read_until(f"pages_write: {page} of 3 · page {page}", 20)
            (tmp_path / str(page)).touch()
        terminal.read_until('"3 pages"', 20)


def test_beckon_ask_shows_it_on_the_terminal(platform: LocalPlatform) -> None:
    (received := platform.folder.parent / "heard").mkdir()
    with beckon_on_a_terminal(platform, "ask", "Write 2 pages") as terminal:
        terminal.read_until("→ pages_write(", 20)
        for page in (1, 2):
            terminal.read_until(f"pages_write: {page} of 2 · page {page}", 20)
            (received / str(page)).touch()
        terminal.read_until("← pages_write: 2 pages", 20)


@contextmanager
def beckon_on_a_terminal(platform: LocalPlatform, *arguments: str) -> Iterator[Terminal]:
    """Run a command of `beckon` to its end, on a terminal."""
    environment = clean_environment(
        {"BECKON_PORT": str(platform.port), "TERM": "xterm", "COLUMNS": "300", "LINES": "50"}
    )
    pid, descriptor = pty.fork()
    if pid == 0:
        beckon = str(Path(sys.executable).parent / "beckon")
        os.execvpe(beckon, [beckon, *arguments], environment)
    try:
        yield Terminal(descriptor)
    finally:
        os.close(descriptor)
        os.waitpid(pid, 0)
