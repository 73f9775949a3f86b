"""Every view, in both themes and at both sizes: no serious fault in accessibility, and nothing too wide."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.agent.scripted_model import asks_for, says
from tests.browser.chatting import answered, ask
from tests.browser.conftest import DESKTOP, Open
from tests.e2e.local_platform import LocalPlatform
from tests.e2e.model_thread import ModelThread

AXE = Path(__file__).parents[2] / "agent/node_modules/axe-core/axe.min.js"
PHONE = {"width": 390, "height": 844}
MARKDOWN = """# Title

Text with a [link](https://example.com).

```
code
```

| a | b |
| - | - |
| 1 | 2 |
"""


def empty(page: Page, model: ModelThread) -> None:
    expect(page.get_by_label("Your question")).to_be_visible()


def conversation(page: Page, model: ModelThread) -> None:
    model.play(asks_for(("test_cities", {}), ("test_refuse", {}), ("test_beep", {})), says(MARKDOWN))
    ask(page, "Show all of it, " + "in a question that is longer than a phone is wide, " * 3)
    answered(page, "code")


def chart(page: Page, model: ModelThread) -> None:
    model.play(asks_for(("test_months", {})), says("Warm."))
    ask(page, "Draw it")
    answered(page, "Warm.")
    page.get_by_role("button", name="Chart").click()


def approval(page: Page, model: ModelThread) -> None:
    model.play(asks_for(("test_book", {"seat": "12A"})))
    ask(page, "Book it")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()


def editing(page: Page, model: ModelThread) -> None:
    model.play(says("Yes."))
    ask(page, "Is it so?")
    answered(page, "Yes.")
    page.get_by_role("button", name="Edit the question").click()


def tools(page: Page, model: ModelThread) -> None:
    page.get_by_role("link", name="Tools").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Tools")


def runs(page: Page, model: ModelThread) -> None:
    page.get_by_role("link", name="Runs", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Runs")


Scene = Callable[[Page, ModelThread], None]
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
SIZES = {"desktop": DESKTOP, "phone": PHONE}
SCENES: list[Scene] = [empty, conversation, chart, approval, editing, tools, runs]


def faults(page: Page) -> list[str]:
    """Return what axe finds that is serious or worse: the rule, and where."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: dict[str, Any] = page.evaluate("axe.run({ resultTypes: ['violations'] })")
    return [
        f"{one['id']}: {one['help']}: {node['target']}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def faults_in_both_themes(page: Page) -> list[str]:
    """Return the faults of a page in the light theme, and then in the dark one."""
    found, backgrounds = [], set()
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        backgrounds.add(page.evaluate(BACKGROUND))
        found += [f"{theme}: {fault}" for fault in faults(page)]
    assert len(backgrounds) == 2, "both themes look alike"
    return found


# What is wider than its place, and in nothing that scrolls sideways.
CUT_OFF = """[...document.querySelectorAll("#root *")]
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > innerWidth + 1)
    .filter((one) => !one.closest(".scrolls, pre, dialog, .unseen, .bubble, .skip"))
    .map((one) => `${one.tagName}.${one.className}`)"""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scene", SCENES)
def test_a_view_is_for_everybody(
    open_page: Open, platform: LocalPlatform, model: ModelThread, scene: Scene, size: str
) -> None:
    page = open_page(platform.url, viewport=SIZES[size])

    scene(page, model)

    assert faults_in_both_themes(page) == []
    assert page.evaluate(CUT_OFF) == []


def test_the_theme_follows_the_system_until_one_is_chosen(open_page: Open, platform: LocalPlatform) -> None:
    page = open_page(platform.url, color_scheme="dark")
    dark = page.evaluate(BACKGROUND)

    page.get_by_role("button", name="Light theme").click()
    light = page.evaluate(BACKGROUND)
    page.reload()

    assert dark != light
    expect(page.get_by_role("button", name="Dark theme")).to_be_visible()
    assert page.evaluate(BACKGROUND) == light


def test_the_keyboard_alone_is_enough(page: Page, model: ModelThread) -> None:
    model.play(asks_for(("test_book", {"seat": "1A"})), says("Done."))
    page.locator("body").press("Tab")
    page.get_by_role("link", name="Skip to the content").press("Enter")
    expect(page.get_by_role("main")).to_be_focused()

    page.get_by_label("Your question").focus()
    page.keyboard.type("Book 1A")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    for _ in range(12):  # back from the field to the question
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.textContent") == "Approve":
            break
    page.keyboard.press("Enter")

    answered(page, "Done.")


def test_another_view_is_named_and_begins_with_the_focus(page: Page) -> None:
    page.get_by_role("link", name="Tools").press("Enter")

    expect(page).to_have_title("Tools · Beckon")
    expect(page.get_by_role("main")).to_be_focused()
