"""A Chromium, a platform with a scripted model, and pages that fail a test where a script of theirs fails."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.browser.chatting import note_announcements
from tests.browser.proxy import Proxy
from tests.e2e.conftest import Start, model, start_platform
from tests.e2e.local_platform import LocalPlatform
from tests.e2e.manifests import tool_manifests
from tests.e2e.model_thread import ModelThread
from tests.patience import PATIENCE

SERVE = "python -m beckon_tools serve tests.browser.tools:"
SEAT = {"type": "object", "properties": {"seat": {"type": "string"}}, "required": ["seat"]}
SEEN = {"type": "object", "properties": {"seen": {"type": "string"}}, "required": ["seen"]}
APPROVAL = {"beckon.dev/requires-approval": "true"}
DESKTOP = {"width": 1280, "height": 800}

__all__ = ["model", "start_platform"]

# The first is Chromium without its windows; the tests take two thirds of the time with it.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# What the browser itself says of an answer with an error status; what the page makes of it is tested.
_REFUSED = re.compile(r"Failed to load resource: (the server responded|net::ERR_)")


def chromium() -> str:
    """Return the path of this machine's Chromium."""
    found = os.environ.get("BECKON_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        pytest.fail(
            "there is no Chromium: `make test-browser` brings one, or set BECKON_CHROMIUM to its path"
        )
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The Chromium of this machine, without a window."""
    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        # Root may not use Chromium's sandbox; everything that is opened here is ours.
        launched = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tests' own tools."""
    folder = tmp_path_factory.mktemp("manifests")
    for name in ("cities", "months", "beep", "refuse", "paint"):
        text = tool_manifests(f"test-{name}", f"Tell of {name}.", {}, command=SERVE + name)
        (folder / f"{name}.yaml").write_text(text)
    pages = tool_manifests("test-pages", "Write pages.", SEEN, command=SERVE + "pages")
    (folder / "pages.yaml").write_text(pages)
    book = tool_manifests("test-book", "Book.", SEAT, command=SERVE + "book", annotations=APPROVAL)
    (folder / "book.yaml").write_text(book)
    return folder


@pytest.fixture(scope="module")
def platform(start_platform: Start, manifests: Path, model: ModelThread) -> LocalPlatform:
    """A platform with these tools and the scripted model."""
    return start_platform(
        manifests,
        OPENAI_BASE_URL=model.base_url,
        BECKON_MODEL="scripted",
        BECKON_TOOLS_PROGRESS_SECONDS="0",
    )


@pytest.fixture
def proxy(platform: LocalPlatform) -> Iterator[Proxy]:
    """The way to the platform, which a test can cut."""
    with Proxy.to(platform.port) as running:
        yield running


Open = Callable[..., Page]


@pytest.fixture
def problems() -> list[str]:
    """What a browser complained of; a test that expects it empties the list."""
    return []


@pytest.fixture
def open_page(browser: Browser, problems: list[str]) -> Iterator[Open]:
    """Open pages; a script that fails, or that the policy stops, fails the test."""
    contexts: list[BrowserContext] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not _REFUSED.match(message.text):
            problems.append(message.text)

    def open_one(url: str, **options: Any) -> Page:
        context = browser.new_context(**{"viewport": DESKTOP, "reduced_motion": "reduce", **options})
        contexts.append(context)
        note_announcements(context)
        context.set_default_timeout(PATIENCE * 1000)
        page = context.new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(url)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def page(open_page: Open, platform: LocalPlatform) -> Page:
    """The page of the platform, ready for a question."""
    opened = open_page(platform.url)
    opened.get_by_label("Your question").wait_for()
    return opened
