"""What a tool reports while it works, seen on the page."""

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.agent.scripted_model import asks_for, says
from tests.browser.chatting import announced, answered, ask, card
from tests.browser.conftest import Open
from tests.browser.test_views import faults
from tests.e2e.local_platform import LocalPlatform
from tests.e2e.model_thread import ModelThread


def test_what_a_tool_reports_is_a_bar_on_its_card_until_it_answers(
    page: Page, model: ModelThread, tmp_path: Path
) -> None:
    model.play(asks_for(("test_pages", {"seen": str(tmp_path)})), says("All written."))

    ask(page, "Write it")

    bar = card(page, "test_pages").get_by_role("progressbar", name="Progress of test_pages")
    expect(bar).to_be_visible()
    assert faults(page) == []
    for written in range(1, 5):
        expect(card(page, "test_pages")).to_contain_text(f"{written} of 4 · page {written}")
        expect(bar).to_have_attribute("value", f"{written / 4:g}")
        expect(bar).to_have_attribute("aria-valuetext", f"{written} of 4 · page {written}")
        (tmp_path / str(written)).touch()
    answered(page, "All written.")
    expect(bar).to_have_count(0)


def test_a_call_that_is_joined_in_the_middle_shows_how_far_it_is(
    page: Page, model: ModelThread, tmp_path: Path
) -> None:
    model.play(asks_for(("test_pages", {"seen": str(tmp_path)})), says("All written."))
    ask(page, "Write it")
    expect(card(page, "test_pages")).to_contain_text("1 of 4")

    page.reload()
    expect(card(page, "test_pages")).to_contain_text("1 of 4 · page 1")
    for written in range(1, 5):
        (tmp_path / str(written)).touch()

    answered(page, "All written.")


def test_a_call_by_hand_shows_how_far_it_is(open_page: Open, platform: LocalPlatform, tmp_path: Path) -> None:
    page = open_page(f"{platform.url}/#/tools/test_pages")
    page.get_by_label("seen string").fill(str(tmp_path))
    page.get_by_role("button", name="Call test_pages").click()

    bar = page.get_by_role("progressbar", name="Progress of test_pages")
    for written in range(1, 5):
        expect(bar).to_have_attribute("aria-valuetext", f"{written} of 4 · page {written}")
        (tmp_path / str(written)).touch()

    expect(page.get_by_role("region", name="Reply", exact=True)).to_contain_text("four pages")
    announced(page, "test_pages has answered.")
    expect(bar).to_have_count(0)
