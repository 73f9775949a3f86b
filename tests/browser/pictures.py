"""The pictures of docs/images, taken of the real page: `make pictures` writes them anew.

The platform has the examples of `deploy/examples` and two tools more; the model's words are written here.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.agent.scripted_model import asks_for, says
from tests.browser.chatting import answered, ask, card
from tests.browser.conftest import chromium
from tests.e2e.local_platform import ROOT, LocalPlatform, clean_environment
from tests.e2e.model_thread import ModelThread, model_thread

IMAGES = ROOT / "docs" / "images"
DESKTOP: ViewportSize = {"width": 1100, "height": 770}
PHONE: ViewportSize = {"width": 390, "height": 780}
DENSEST = "select name, symbol, density_g_cm3 from elements where density_g_cm3 is not null"
UNROUTED = """
apiVersion: eventing.knative.dev/v1beta2
kind: EventType
metadata:
  name: invoices.find
  annotations:
    beckon.dev/parameters: '{"number": {"type": "string"}}'
spec:
  type: invoices.find
  description: Find an invoice by its number.
"""


@dataclass(frozen=True)
class Stage:
    """What is played on: a page, its platform, and the model behind it."""

    page: Page
    platform: LocalPlatform
    model: ModelThread

    def go(self, place: str) -> None:
        """Open a view."""
        self.page.goto(f"{self.platform.url}/#/{place}")

    def run(self, question: str) -> str:
        """Have something answered in the service, by what the model is to say next; return the run's id."""
        answer = httpx.post(f"{self.platform.url}/v1/responses", json={"input": question}, timeout=60)
        found: str = answer.raise_for_status().json()["id"]
        return found


def chat(on: Stage) -> None:
    """A question, its call as a card with a chart, the answer."""
    on.model.play(asks_for(("current_time", {"timezone": "Asia/Tokyo"})), says("It is evening in Tokyo."))
    ask(on.page, "What time is it in Tokyo?")
    answered(on.page, "evening")
    on.page.get_by_role("link", name="New chat").click()
    query = f"{DENSEST} order by density_g_cm3 desc limit 4"
    on.model.play(
        asks_for(("sql", {"query": query})),
        says("Osmium and iridium are the densest, both above **22 g/cm³**: twice as dense as lead."),
    )
    ask(on.page, "Which elements are the densest?")
    answered(on.page, "Osmium")
    card(on.page, "sql").get_by_role("button", name="Chart").click()


def approval(on: Stage) -> None:
    """A call that waits for a person."""
    on.model.play(asks_for(("trains_book", {"train": "601", "seat": "12A"})))
    ask(on.page, "Book seat 12A on the night train to Bergen")
    expect(on.page.get_by_role("button", name="Approve")).to_be_visible()


def tools(on: Stage) -> None:
    """All tools, with what is wrong with them."""
    on.go("tools")
    expect(on.page.locator(".tool-row")).not_to_have_count(0)


def tool(on: Stage) -> None:
    """One tool: its route, what the model sees, and a form."""
    on.go("tools/trains_book")
    expect(on.page.get_by_role("heading", name="Call this tool")).to_be_visible()


def run(on: Stage) -> None:
    """The time line of a run, with a call that was delivered three times."""
    lead = f"{DENSEST} and name = 'Lead'"
    on.model.play(
        asks_for(
            ("stock_count", {"item": "lead weights"}),
            ("sql", {"query": lead}),
            ("reserve_book", {"id": 2, "reader": "Ann"}),
        ),
        asks_for(("calculator", {"expression": "15 * 11.34"})),
        says("There are 15 left: 170 g in all. Opticks is lent out."),
    )
    on.go(f"runs/{on.run('How many lead weights are left? And reserve Opticks for Ann.')}")
    expect(on.page.locator(".line-row")).not_to_have_count(0)


def runs(on: Stage) -> None:
    """The latest questions."""
    on.go("runs")
    expect(on.page.locator(".run-row").first).to_be_visible()


@dataclass(frozen=True)
class Scene:
    """A picture: its name, what is played for it, and how it is looked at."""

    name: str
    play: Callable[[Stage], None]
    size: ViewportSize

    def take(self, browser: Browser, platform: LocalPlatform, model: ModelThread) -> None:
        """Play it, and take its picture in light and in dark."""
        context = browser.new_context(viewport=self.size, color_scheme="light", reduced_motion="reduce")
        page = context.new_page()
        page.goto(platform.url)
        page.get_by_label("Your question").wait_for()
        self.play(Stage(page, platform, model))
        page.evaluate("document.fonts.ready.then(() => true)")
        page.screenshot(path=IMAGES / f"{self.name}.png")
        page.emulate_media(color_scheme="dark")
        page.screenshot(path=IMAGES / f"{self.name}-dark.png")
        context.close()


SCENES = (
    Scene("page", chat, DESKTOP),
    Scene("page-approval", approval, PHONE),
    Scene("page-tools", tools, DESKTOP),
    Scene("page-tool", tool, {"width": 1100, "height": 1000}),
    Scene("page-run", run, {"width": 1100, "height": 800}),
    Scene("page-runs", runs, PHONE),
)


def main() -> int:
    """Take all pictures; return 0."""
    with (
        tempfile.TemporaryDirectory() as work,
        model_thread() as model,
        _platform(Path(work), model) as platform,
        sync_playwright() as playwright,
    ):
        # Root may not use Chromium's sandbox; everything that is opened here is ours.
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for scene in SCENES:
            scene.take(browser, platform, model)
        browser.close()
    return 0


@contextmanager
def _platform(work: Path, model: ModelThread) -> Iterator[LocalPlatform]:
    folder = work / "manifests"
    shutil.copytree(ROOT / "deploy" / "examples", folder)
    shutil.rmtree(folder / "two-agents")
    (folder / "invoices.yaml").write_text(UNROUTED)
    for name in ("book", "count"):
        words = ("manifest", f"tests.browser.picture_tools:{name}", "--output", str(folder / name))
        command = [sys.executable, "-m", "beckon_tools", *words]
        subprocess.run(command, env=clean_environment({}), check=True, stdout=subprocess.DEVNULL)
    platform = LocalPlatform(folder, work, {"OPENAI_BASE_URL": model.base_url, "BECKON_MODEL": "scripted"})
    try:
        platform.wait_until_ready()
        yield platform
    finally:
        platform.stop()


if __name__ == "__main__":
    sys.exit(main())
