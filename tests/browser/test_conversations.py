"""The list of conversations: search, order, titles, and what deleting one leaves."""

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.agent.scripted_model import says
from tests.browser.chatting import answered, ask, turns
from tests.browser.conftest import Open
from tests.e2e.local_platform import LocalPlatform
from tests.e2e.model_thread import ModelThread
from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def _empty(platform: LocalPlatform) -> None:
    stored = httpx.get(f"{platform.url}/v1/conversations", params={"limit": 100}, timeout=PATIENCE)
    for one in stored.json()["data"]:
        httpx.delete(f"{platform.url}/v1/conversations/{one['id']}", timeout=PATIENCE)


def titles(page: Page) -> Locator:
    return page.get_by_role("complementary", name="Conversations").locator(".conversation-title")


def two_conversations(page: Page, model: ModelThread) -> None:
    model.play(says("Paris."), says("Whales."))
    ask(page, "What is the capital of France?")
    answered(page, "Paris.")
    page.get_by_role("link", name="New chat").click()
    ask(page, "Which animals are large?")
    answered(page, "Whales.")


def test_each_conversation_is_listed_by_its_first_question(page: Page, model: ModelThread) -> None:
    two_conversations(page, model)

    expect(titles(page)).to_have_text(["Which animals are large?", "What is the capital of France?"])
    titles(page).last.click()
    answered(page, "Paris.")
    expect(page.get_by_role("link", name="What is the capital of France?")).to_have_attribute(
        "aria-current", "page"
    )


def test_the_conversation_that_was_used_last_is_first(page: Page, model: ModelThread) -> None:
    two_conversations(page, model)
    titles(page).last.click()
    answered(page, "Paris.")

    model.play(says("Two million."))
    ask(page, "How many people live there?")
    answered(page, "Two million.")

    expect(titles(page)).to_have_text(["What is the capital of France?", "Which animals are large?"])
    page.reload()
    expect(titles(page)).to_have_text(["What is the capital of France?", "Which animals are large?"])


def test_the_list_is_searched_by_what_was_said(page: Page, model: ModelThread) -> None:
    two_conversations(page, model)

    page.get_by_role("searchbox", name="Search conversations").first.fill("whales")

    expect(titles(page)).to_have_text(["Which animals are large?"])
    page.get_by_role("searchbox", name="Search conversations").first.fill("penguins")
    expect(page.get_by_text("No conversation has these words.").first).to_be_visible()


def test_a_conversation_is_deleted_after_a_second_thought(page: Page, model: ModelThread) -> None:
    two_conversations(page, model)

    page.get_by_role("button", name="Delete Which animals are large?").click()
    page.get_by_role("button", name="Cancel").click()
    expect(titles(page)).to_have_count(2)
    page.get_by_role("button", name="Delete Which animals are large?").click()
    page.get_by_role("button", name="Delete", exact=True).click()

    expect(titles(page)).to_have_text(["What is the capital of France?"])
    expect(turns(page)).to_have_count(0)


def test_on_a_phone_the_list_is_a_drawer(
    open_page: Open, platform: LocalPlatform, model: ModelThread
) -> None:
    page = open_page(platform.url, viewport={"width": 390, "height": 844})
    model.play(says("Yes."))
    ask(page, "Does it fit?")
    answered(page, "Yes.")
    page.get_by_role("link", name="New chat").click()

    page.get_by_role("button", name="Conversations").click()
    page.get_by_role("dialog", name="Conversations").get_by_role("link", name="Does it fit?").click()

    expect(page.get_by_role("dialog")).to_be_hidden()
    answered(page, "Yes.")


def test_the_items_of_a_conversation_are_shown(open_page: Open, platform: LocalPlatform) -> None:
    items = [
        {"type": "message", "role": "user", "content": "Said over the API"},
        {"type": "message", "role": "assistant", "content": "And answered there."},
    ]
    made = httpx.post(f"{platform.url}/v1/conversations", json={"items": items}, timeout=PATIENCE).json()

    page = open_page(f"{platform.url}/#/chat/{made['id']}")

    answered(page, "And answered there.")
    expect(turns(page)).to_contain_text("Said over the API")
