"""The way in: a key where the agent asks for one, kept in the tab, and gone with it."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from beckon_contract.api_keys import new_entry, new_key
from tests.browser.conftest import Open
from tests.e2e.conftest import Start
from tests.e2e.local_platform import LocalPlatform

KEY = new_key()


@pytest.fixture(scope="module")
def closed(start_platform: Start, manifests: Path, tmp_path_factory: pytest.TempPathFactory) -> LocalPlatform:
    """A platform that knows one key."""
    keys = tmp_path_factory.mktemp("keys") / "keys.jsonl"
    keys.write_text(new_entry(KEY, "ann").line() + "\n")
    return start_platform(manifests, BECKON_KEYS_FILE=str(keys))


def test_who_has_a_key_gets_in_and_stays_until_signing_out(open_page: Open, closed: LocalPlatform) -> None:
    page = open_page(closed.url)
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_label("Key or token")).to_be_focused()

    page.get_by_label("Key or token").fill(KEY)
    page.get_by_label("Key or token").press("Enter")
    expect(page.get_by_label("Your question")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Your question")).to_be_visible()

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_a_key_that_is_wrong_is_refused_in_words(open_page: Open, closed: LocalPlatform) -> None:
    page = open_page(closed.url)

    page.get_by_label("Key or token").fill("bk_wrong")
    page.get_by_role("button", name="Sign in").click()

    expect(page.get_by_role("alert")).to_contain_text("the API key is not valid")
    expect(page.get_by_label("Your question")).to_have_count(0)


def test_a_key_is_of_its_tab_alone(open_page: Open, closed: LocalPlatform) -> None:
    page = open_page(closed.url)
    page.get_by_label("Key or token").fill(KEY)
    page.get_by_label("Key or token").press("Enter")
    expect(page.get_by_label("Your question")).to_be_visible()

    other = page.context.new_page()
    other.goto(closed.url)

    expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
    assert KEY not in page.evaluate("JSON.stringify(localStorage)")
    assert KEY not in page.evaluate("document.cookie")
