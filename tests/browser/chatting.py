"""What tests say and look for in the view Chat."""

from playwright.sync_api import Locator, Page, expect


def ask(page: Page, question: str) -> None:
    """Type a question and send it."""
    page.get_by_label("Your question").fill(question)
    page.get_by_label("Your question").press("Enter")


def answered(page: Page, text: str) -> None:
    """Wait until the last answer says this, and is over."""
    expect(turns(page).last.locator(".markdown").last).to_contain_text(text)
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def turns(page: Page) -> Locator:
    """The questions with their answers."""
    return page.get_by_role("article")


def card(page: Page, tool: str) -> Locator:
    """The last card of a call of this tool."""
    return page.get_by_role("region", name=f"Call of {tool}").last


def announced(page: Page, text: str) -> None:
    """Wait until a screen reader gets this text."""
    expect(page.locator("[aria-live=polite]")).to_contain_text(text)
