"""Streams that break, and conversations that are left and come back to."""

import asyncio

from playwright.sync_api import expect

from tests.agent.scripted_model import Reply, asks_for, chunk, says, sse
from tests.browser.chatting import answered, ask, card, turns
from tests.browser.conftest import Open
from tests.browser.proxy import Proxy
from tests.e2e.model_thread import ModelThread


def in_two(first: str, second: str, event: asyncio.Event) -> Reply:
    """Return a reply that waits between its words."""
    words = [sse(chunk({"content": word}), done=False) for word in (first,)]
    return Reply([*words, sse(chunk({"content": second}), chunk(finish="stop"))], holds=event)


def test_a_stream_that_breaks_is_joined_again(open_page: Open, proxy: Proxy, model: ModelThread) -> None:
    page, more = open_page(proxy.url), asyncio.Event()
    model.play(in_two("Before the break, ", "and after it.", more))
    ask(page, "Go on whatever happens")
    expect(turns(page).last.locator(".markdown")).to_contain_text("Before the break")

    proxy.cut()
    expect(turns(page).last).to_contain_text("The connection broke. Connecting again …")
    model.let(more)
    proxy.mend()

    answered(page, "Before the break, and after it.")
    assert len(model.bodies) == 1


def test_an_agent_that_stays_away_is_reported_and_the_answer_is_there_later(
    open_page: Open, proxy: Proxy, model: ModelThread
) -> None:
    page = open_page(proxy.url)
    model.play(says("Never mind."))
    page.get_by_label("Your question").wait_for()

    proxy.cut()
    ask(page, "Anybody?")
    expect(turns(page).last.get_by_role("alert")).to_contain_text("The agent does not answer.")
    proxy.mend()
    turns(page).last.get_by_role("button", name="Try again").click()

    answered(page, "Never mind.")


def test_an_answer_goes_on_while_another_view_is_shown(
    open_page: Open, proxy: Proxy, model: ModelThread
) -> None:
    page, more = open_page(proxy.url), asyncio.Event()
    model.play(in_two("One, two, ", "three.", more))
    ask(page, "Count")
    expect(turns(page).last.locator(".markdown")).to_contain_text("One, two")

    page.get_by_role("link", name="Tools").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Tools")
    model.let(more)
    page.go_back()

    answered(page, "One, two, three.")


def test_a_conversation_is_there_again_after_a_reload_with_its_calls(
    open_page: Open, proxy: Proxy, model: ModelThread
) -> None:
    page = open_page(proxy.url)
    model.play(asks_for(("test_cities", {})), says("Three cities."), says("You are welcome."))
    ask(page, "Which cities?")
    answered(page, "Three cities.")
    ask(page, "Thanks")
    answered(page, "You are welcome.")

    page.reload()

    answered(page, "You are welcome.")
    expect(turns(page)).to_have_count(2)
    expect(turns(page).first).to_contain_text("Which cities?")
    expect(card(page, "test_cities")).to_contain_text("Done")
    expect(card(page, "test_cities").get_by_role("cell", name="Bergen")).to_be_visible()


def test_a_run_that_is_running_is_followed_after_a_reload(
    open_page: Open, proxy: Proxy, model: ModelThread
) -> None:
    page, more = open_page(proxy.url), asyncio.Event()
    model.play(in_two("The half, ", "and the whole.", more))
    ask(page, "Do not lose it")
    expect(turns(page).last.locator(".markdown")).to_contain_text("The half")

    page.reload()
    expect(turns(page).last.locator(".markdown")).to_contain_text("The half")
    model.let(more)

    answered(page, "The half, and the whole.")
