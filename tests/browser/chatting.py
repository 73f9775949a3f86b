"""What tests say and look for in the view Chat."""

from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.patience import wait_until

# The text for screen readers may be replaced before a test looks.
_NOTE_ANNOUNCEMENTS = """
window.announcements = [];
new MutationObserver(() => {
    const text = document.querySelector("[aria-live=polite]")?.textContent;
    if (text && text !== announcements.at(-1)) announcements.push(text);
}).observe(document, { subtree: true, childList: true, characterData: true });
"""


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
    """Wait until a screen reader has got this text."""
    wait_until(lambda: any(text in each for each in page.evaluate("announcements")))


def note_announcements(context: BrowserContext) -> None:
    """Have the pages of a context note what they announce, for `announced`."""
    context.add_init_script(_NOTE_ANNOUNCEMENTS)
