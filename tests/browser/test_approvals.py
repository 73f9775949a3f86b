"""Calls that a person has to allow: shown in the conversation, decided there or elsewhere."""

import httpx
from playwright.sync_api import Page, expect

from tests.agent.scripted_model import asks_for, says
from tests.browser.chatting import announced, answered, ask, card, turns
from tests.browser.conftest import Open
from tests.browser.test_views import faults
from tests.e2e.local_platform import LocalPlatform
from tests.e2e.model_thread import ModelThread
from tests.patience import PATIENCE

BOOK = ("test_book", {"seat": "12A"})
RECOVERED = "Recovered: the model wrote this call into its answer"


def booking(page: Page, model: ModelThread) -> None:
    """Bring a run to its question."""
    model.play(asks_for(BOOK), says("All is settled."))
    ask(page, "Book 12A")
    expect(page.get_by_role("region", name="Approval of test_book")).to_contain_text("12A")


def test_a_call_that_is_approved_is_made(page: Page, model: ModelThread) -> None:
    booking(page, model)
    announced(page, "test_book needs your approval.")

    page.get_by_role("button", name="Approve").click()

    answered(page, "All is settled.")
    expect(page.get_by_role("region", name="Approval of test_book")).to_contain_text("was approved")
    expect(card(page, "test_book")).to_contain_text("Done")
    assert "booked 12A" in str(model.bodies[1]["messages"][-1]["content"])


def test_a_call_that_is_denied_is_not_made(page: Page, model: ModelThread) -> None:
    booking(page, model)

    page.get_by_role("button", name="Deny").click()

    answered(page, "All is settled.")
    expect(page.get_by_role("region", name="Approval of test_book")).to_contain_text("was denied")
    expect(card(page, "test_book")).to_contain_text("Denied")
    assert "denied" in str(model.bodies[1]["messages"][-1]["content"])


def test_a_call_that_the_model_wrote_as_text_says_so_wherever_it_is_shown(
    page: Page, model: ModelThread, open_page: Open, platform: LocalPlatform
) -> None:
    call = '<tool_call>\n{"name": "test_book", "arguments": {"seat": "14C"}}\n</tool_call>'
    model.play(says(call), says("All is settled."))
    ask(page, "A window seat, please")
    expect(page.get_by_role("region", name="Approval of test_book")).to_contain_text(RECOVERED)

    page.get_by_role("button", name="Approve").click()
    answered(page, "All is settled.")

    made = card(page, "test_book")
    made.get_by_role("button").first.click()
    expect(made).to_contain_text(RECOVERED)
    made.get_by_role("link", name="Events of this run").click()
    details = page.get_by_role("main")
    details.get_by_role("button", name="test_book").first.click()
    expect(details).to_contain_text(RECOVERED)


def test_two_calls_of_one_turn_are_decided_one_by_one(page: Page, model: ModelThread) -> None:
    model.play(asks_for(BOOK, ("test_book", {"seat": "12B"})), says("One of two."))
    ask(page, "Book both")
    expect(page.get_by_role("button", name="Approve")).to_have_count(2)

    page.get_by_role("button", name="Approve").first.click()
    expect(page.get_by_role("button", name="Deny")).to_have_count(1)
    assert len(model.bodies) == 1
    page.get_by_role("button", name="Deny").click()

    answered(page, "One of two.")
    results = [str(m["content"]) for m in model.bodies[1]["messages"] if m["role"] == "tool"]
    assert "booked 12A" in results[0]
    assert "denied" in results[1]


def test_a_decision_that_was_made_elsewhere_shows_here(
    page: Page, model: ModelThread, platform: LocalPlatform
) -> None:
    booking(page, model)
    run = page.get_by_role("link", name="Events of this run").get_attribute("href") or ""
    response = httpx.get(f"{platform.url}/v1/responses/{run.rpartition('/')[2]}", timeout=PATIENCE)
    output = response.json()["output"]
    answer = {
        "type": "mcp_approval_response",
        "approval_request_id": output[-1]["id"],
        "approve": True,
    }

    httpx.post(f"{platform.url}/v1/responses", json={"input": [answer]}, timeout=PATIENCE).raise_for_status()

    answered(page, "All is settled.")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)


def test_a_run_that_waits_can_be_stopped_elsewhere(
    page: Page, model: ModelThread, platform: LocalPlatform
) -> None:
    booking(page, model)
    run = page.get_by_role("link", name="Events of this run").get_attribute("href") or ""

    cancel = f"{platform.url}/v1/responses/{run.rpartition('/')[2]}/cancel"
    httpx.post(cancel, timeout=PATIENCE).raise_for_status()

    expect(turns(page).last).to_contain_text("Stopped.")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)


def test_a_question_is_still_there_after_a_reload(page: Page, model: ModelThread, open_page: Open) -> None:
    booking(page, model)

    page.reload()
    page.get_by_role("button", name="Approve").click()

    answered(page, "All is settled.")
    expect(card(page, "test_book")).to_contain_text("Done")


def test_a_question_is_decided_about_elsewhere_while_another_conversation_is_shown(
    page: Page, model: ModelThread, platform: LocalPlatform
) -> None:
    booking(page, model)
    run = page.get_by_role("link", name="Events of this run").get_attribute("href") or ""
    response = httpx.get(f"{platform.url}/v1/responses/{run.rpartition('/')[2]}", timeout=PATIENCE)
    output = response.json()["output"]
    page.get_by_role("link", name="New chat").click()
    expect(turns(page)).to_have_count(0)

    answer = {"type": "mcp_approval_response", "approval_request_id": output[-1]["id"], "approve": True}
    httpx.post(f"{platform.url}/v1/responses", json={"input": [answer]}, timeout=PATIENCE).raise_for_status()
    page.go_back()

    answered(page, "All is settled.")


def test_the_form_of_a_tool_is_filled_in_below_its_call(page: Page, model: ModelThread) -> None:
    model.play(asks_for(("test_paint", {})), says("It is green."))
    ask(page, "Paint it")
    form = page.get_by_role("form", name="Input for test_paint")
    expect(form).to_contain_text("Which colour shall it be?")
    expect(card(page, "test_paint")).to_contain_text("Waiting for you")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)

    form.get_by_label("colour").select_option("green")
    form.get_by_role("button", name="Send").click()

    answered(page, "It is green.")
    expect(card(page, "test_paint")).to_contain_text("Done")
    expect(form).to_have_count(0)


def test_the_form_of_a_tool_is_filled_in_where_the_run_is_shown(
    open_page: Open, platform: LocalPlatform, model: ModelThread
) -> None:
    model.play(asks_for(("test_paint", {})), says("It is red."))
    request = {"input": "Paint it", "background": True}
    run = httpx.post(f"{platform.url}/v1/responses", json=request, timeout=60).json()["id"]
    page = open_page(f"{platform.url}/#/runs/{run}")
    form = page.get_by_role("form", name="Input for test_paint")
    expect(form).to_contain_text("Which colour shall it be?")
    expect(page.get_by_role("main")).to_contain_text("Waiting for you")
    assert faults(page) == []

    form.get_by_label("coats").fill("7")
    form.get_by_role("button", name="Send").click()
    expect(form).to_contain_text("colour is required")
    form.get_by_label("colour").select_option("red")
    form.get_by_label("coats").fill("2")
    form.get_by_role("button", name="Send").click()

    announced(page, "test_paint has your answer.")
    expect(page.get_by_role("main")).to_contain_text("painted red, 2 times")
    expect(page.get_by_role("main")).to_contain_text("Which colour shall it be? Answered.")
