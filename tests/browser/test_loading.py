"""A page whose files do not all arrive."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.e2e.local_platform import LocalPlatform


# A module is requested twice: as a preload, and by the module that imports it.
@pytest.mark.parametrize(("part", "times"), [("app/session.js", 2), ("styles/base.css", 1)])
def test_a_page_whose_part_does_not_arrive_is_loaded_again(
    open_page: Open, platform: LocalPlatform, part: str, times: int
) -> None:
    page = open_page("about:blank")
    page.route(f"**/{part}", lambda route: route.abort("connectionreset"), times=times)

    page.goto(platform.url)

    expect(page.get_by_label("Your question")).to_be_visible()
    expect(page.locator("body")).not_to_have_css("margin", "8px")


def test_a_style_of_others_that_does_not_arrive_changes_nothing(
    open_page: Open, platform: LocalPlatform, problems: list[str]
) -> None:
    page = open_page(platform.url)
    page.get_by_label("Your question").fill("half a question")

    page.evaluate(
        """() => new Promise((resolve) => {
            const style = document.createElement("link");
            style.rel = "stylesheet";
            style.href = "https://extension.invalid/style.css";
            style.onerror = resolve;
            document.head.append(style);
        })"""
    )

    expect(page.get_by_label("Your question")).to_have_value("half a question")
    assert "extension.invalid" in problems.pop()  # the page's policy refused it


def test_a_page_whose_part_never_arrives_says_so(open_page: Open, platform: LocalPlatform) -> None:
    page = open_page("about:blank")
    page.route("**/app/session.js", lambda route: route.abort("connectionrefused"))

    page.goto(platform.url)

    expect(page.get_by_role("alert")).to_contain_text("A part of this page did not arrive.")
    page.unroute("**/app/session.js")
    page.get_by_role("link", name="Load it again").click()
    expect(page.get_by_label("Your question")).to_be_visible()
