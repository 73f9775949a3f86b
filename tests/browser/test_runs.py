"""The view Runs: what was done to answer a question, as a list and as a picture, live, and played again."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.agent.scripted_model import asks_for, refuses, says
from tests.browser.chatting import announced
from tests.browser.conftest import Open
from tests.browser.run_manifests import run_manifests
from tests.browser.test_views import SIZES, faults_in_both_themes
from tests.e2e.conftest import Start
from tests.e2e.local_platform import LocalPlatform
from tests.e2e.model_thread import ModelThread
from tests.patience import PATIENCE


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tools that answer, refuse, wait and are not there."""
    folder = tmp_path_factory.mktemp("manifests")
    run_manifests(folder)
    return folder


@pytest.fixture(autouse=True)
def _no_approvals(platform: LocalPlatform) -> Iterator[None]:
    yield
    for one in httpx.get(f"{platform.url}/approvals", timeout=PATIENCE).json()["data"]:
        httpx.post(f"{platform.url}/v1/responses/{one['run']}/cancel", timeout=PATIENCE)


class Runs:
    """Asks questions, and opens their runs."""

    def __init__(self, platform: LocalPlatform, model: ModelThread, open_page: Open) -> None:
        self.url = platform.url
        self.model = model
        self.open_page = open_page

    def ask(self, question: str, *script: object, background: bool = False) -> str:
        """Ask, and return the id of the run."""
        self.model.play(*script)  # type: ignore[arg-type]  # replies, as `asks_for` and `says` make them
        body = {"input": question, "background": background}
        answer = httpx.post(f"{self.url}/v1/responses", json=body, timeout=60)
        answer.raise_for_status()
        return str(answer.json()["id"])

    def open(self, run: str = "", **look: object) -> Page:
        """Open a run, or the list."""
        return self.open_page(f"{self.url}/#/runs/{run}", **look)


@pytest.fixture
def runs(platform: LocalPlatform, model: ModelThread, open_page: Open) -> Runs:
    """What each test works with."""
    return Runs(platform, model, open_page)


def row(page: Page, name: str) -> Locator:
    """A row of the time line."""
    return page.get_by_role("group", name="Time line").get_by_role("button", name=name)


def opened(page: Page, name: str) -> Locator:
    """The details of a row, opened."""
    row(page, name).first.click()
    return page.locator(".line-details")


def test_the_list_shows_what_became_of_each_question(runs: Runs) -> None:
    runs.ask("Refuse me", asks_for(("test_refuse", {}), ("test_next", {}), ("test_next", {})), says("No."))
    runs.ask("Book 12A", asks_for(("test_book", {"seat": "12A"})))

    page = runs.open()

    rows = page.locator(".run-row")
    expect(rows.first).to_contain_text("Waiting for you")
    refused = rows.filter(has_text="Refuse me").first
    for text in ("Done", "test_refuse", "test_next ×2", "1 failed", "beckon"):
        expect(refused).to_contain_text(text)
    page.get_by_role("button", name="Waiting").click()
    expect(page.get_by_role("link", name="Refuse me")).to_have_count(0)
    page.get_by_role("link", name="Book 12A").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Book 12A")


def test_a_new_run_appears_in_the_list_by_itself(runs: Runs) -> None:
    page = runs.open()
    expect(page.get_by_role("heading", level=1)).to_have_text("Runs")

    runs.ask("Where did this come from?", says("From elsewhere."))

    expect(page.get_by_role("link", name="Where did this come from?").first).to_be_visible()


def test_the_list_goes_on_when_more_is_wanted(runs: Runs) -> None:
    for number in range(31):
        runs.ask(f"Question {number:02}", says("Yes."))
    page = runs.open()

    expect(page.get_by_role("link", name="Question 30")).to_be_visible()
    expect(page.get_by_role("link", name="Question 00")).to_have_count(0)
    page.get_by_role("button", name="Show more").click()

    expect(page.get_by_role("link", name="Question 00")).to_be_visible()


def test_a_run_is_drawn_with_its_answers_and_calls_one_behind_the_other(runs: Runs) -> None:
    both = asks_for(("test_pause", {"seconds": 1.2}), ("test_next", {}))
    run = runs.ask("Take a while", both, says("That took a while."))

    page = runs.open(run)

    expect(page.locator(".line-row")).to_have_count(4)
    names = [name.strip() for name in page.locator(".line-words").all_inner_texts()]
    assert names == ["Model, turn 1", "test_pause", "test_next", "Answer"]
    bars = [page.locator(".line-row").nth(number).locator(".line-bar").bounding_box() for number in range(4)]
    request, pause, quick, answer = (box for box in bars if box)
    assert request["x"] < pause["x"] <= quick["x"] + 2 < answer["x"]
    assert pause["width"] > quick["width"]
    assert pause["x"] + pause["width"] <= answer["x"] + 2


def test_a_call_shows_its_arguments_its_reply_and_both_events(runs: Runs) -> None:
    run = runs.ask("Order it", asks_for(("test_order", {"item": "mug", "count": 2})), says("Done."))
    page = runs.open(run)

    details = opened(page, "test_order")
    expect(details).to_contain_text("mug")
    expect(details.get_by_role("link", name="The tool test_order")).to_be_visible()
    details.get_by_role("button", name="Raw events").click()

    expect(details.get_by_role("region", name="Call")).to_contain_text('"type": "test.order"')
    expect(details.get_by_role("region", name="Reply")).to_contain_text('"type": "test.order.reply"')
    expect(details.get_by_role("region", name="Reply")).to_contain_text(run)


def test_all_events_of_a_run_are_one_click_away(runs: Runs) -> None:
    run = runs.ask("Twice", asks_for(("test_next", {}), ("test_refuse", {})), says("Done."))
    page = runs.open(run)

    page.get_by_role("button", name="Raw events").click()

    expect(page.get_by_role("region", name="Events of test_next")).to_contain_text('"test.next"')
    expect(page.get_by_role("region", name="Events of test_refuse")).to_contain_text("no seats left")


def test_an_answer_shows_what_was_said_and_what_it_cost(runs: Runs) -> None:
    run = runs.ask("Say it", says("It is **so**."))
    page = runs.open(run)

    details = opened(page, "Answer")

    expect(details.locator("strong")).to_have_text("so")
    expect(details).to_contain_text("scripted")


def test_a_call_that_could_not_be_delivered_is_marked_and_says_why(runs: Runs) -> None:
    run = runs.ask("Call the dead", asks_for(("test_dead", {})), says("No one is there."))
    page = runs.open(run)

    expect(row(page, "test_dead")).to_contain_text("Dead letter")
    expect(page.locator(".mark-dead")).to_have_count(1)
    details = opened(page, "test_dead")

    expect(details.get_by_role("alert")).to_contain_text("could not be delivered")
    expect(details.get_by_role("alert")).to_contain_text("cannot connect")


def test_deliveries_that_the_broker_repeated_are_counted_in_words_and_in_the_picture(runs: Runs) -> None:
    run = runs.ask("Be patient", asks_for(("test_moody", {}), ("test_next", {})), says("It works now."))
    page = runs.open(run)

    expect(row(page, "test_moody")).to_contain_text("Delivered 3 times")
    expect(page.locator(".mark-delivered")).to_have_text("3×")
    expect(row(page, "test_next")).not_to_contain_text("elivered")
    details = opened(page, "test_moody")
    expect(details).to_contain_text("all right")
    expect(details).to_contain_text("3 times: the Broker tried again")
    details.get_by_role("button", name="Raw events").click()

    expect(details.get_by_role("region", name="Reply")).to_contain_text('"beckondeliveries": "3"')


def test_a_run_that_waits_goes_on_with_a_word_from_here(runs: Runs) -> None:
    run = runs.ask("Book 12A", asks_for(("test_book", {"seat": "12A"})), says("It is booked."))
    page = runs.open(run)
    expect(page.locator(".run-state")).to_contain_text("Waiting")
    expect(page.get_by_role("group", name="Approval of test_book")).to_contain_text("needs your approval")

    page.get_by_role("button", name="Approve").click()

    expect(page.locator(".run-state")).to_contain_text("Done")
    announced(page, "The run is over: Done.")
    expect(page.locator(".line-details")).to_contain_text("booked 12A")
    expect(page.locator(".line-details")).to_contain_text("approved")
    expect(page.locator(".bar-waiting:not(.swatch)")).to_have_count(1)


def test_a_call_can_be_denied_from_here(runs: Runs) -> None:
    run = runs.ask("Book 12B", asks_for(("test_book", {"seat": "12B"})), says("It is not booked."))
    page = runs.open(run)

    page.get_by_role("button", name="Deny").click()

    expect(row(page, "test_book")).to_contain_text("Denied")


def test_a_run_is_live_while_it_works(runs: Runs, tmp_path: Path) -> None:
    slow = asks_for(("test_hold", {"file": str(tmp_path / "enough")}))
    run = runs.ask("Wait for it", slow, says("It is over."), background=True)
    page = runs.open(run)

    expect(row(page, "test_hold")).to_contain_text("In progress")
    expect(page.locator(".bar-live")).to_have_count(1)
    expect(page.get_by_role("heading", name="Replay")).to_have_count(0)
    (tmp_path / "enough").touch()

    expect(page.locator(".run-state")).to_contain_text("Done")
    expect(page.locator(".bar-live")).to_have_count(0)
    expect(page.get_by_role("heading", name="Replay")).to_be_visible()


def test_a_run_that_another_process_took_over_says_so_and_the_page_stays_with_it(
    start_platform: Start, manifests: Path, model: ModelThread, open_page: Open, tmp_path: Path
) -> None:
    durable = {"BECKON_STORE": f"sqlite:///{tmp_path / 'runs.db'}", "BECKON_LEASE_SECONDS": "2"}
    platform = start_platform(manifests, OPENAI_BASE_URL=model.base_url, BECKON_MODEL="scripted", **durable)
    runs = Runs(platform, model, open_page)
    slow = asks_for(("test_hold", {"file": str(tmp_path / "enough")}))
    run = runs.ask("Survive", slow, says("Still here."), background=True)
    page = runs.open(run)
    expect(row(page, "test_hold")).to_contain_text("In progress")

    os.kill(platform.pid_of("beckon_agent"), signal.SIGKILL)
    expect(page.locator(".run-facts")).to_contain_text("Taken over", timeout=60_000)
    (tmp_path / "enough").touch()

    expect(page.locator(".run-state")).to_contain_text("Done", timeout=60_000)
    expect(row(page, "test_hold")).to_contain_text("Sent 2 times")
    expect(page.locator(".mark-again")).to_have_count(1)
    expect(page.locator(".line-taken")).to_have_count(3)
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_run_running_can_be_stopped(runs: Runs, tmp_path: Path) -> None:
    run = runs.ask("Never mind", asks_for(("test_hold", {"file": str(tmp_path / "never")})), background=True)
    page = runs.open(run)
    expect(row(page, "test_hold")).to_be_visible()

    page.get_by_role("button", name="Stop").click()

    expect(page.locator(".run-state")).to_contain_text("Stopped")


def test_a_run_that_was_stopped_asks_for_no_word_any_more(runs: Runs) -> None:
    request = 'Book 7C\n\n<file name="notes.txt">\nhello\n</file>'
    run = runs.ask(request, asks_for(("test_book", {"seat": "7C"})))
    httpx.post(f"{runs.url}/v1/responses/{run}/cancel", timeout=PATIENCE)
    page = runs.open()

    entry = page.locator(".run-row").filter(has_text="Book 7C").first
    expect(entry).to_contain_text("Stopped")
    expect(entry).not_to_contain_text("hello")
    entry.get_by_role("link").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("Book 7C")
    expect(row(page, "test_book")).to_contain_text("No decision")
    expect(opened(page, "test_book")).to_contain_text("No decision")
    expect(page.get_by_role("button", name="Approve")).to_have_count(0)


def test_a_run_that_failed_says_why(runs: Runs) -> None:
    runs.model.play(refuses(400, "this model is closed"))
    httpx.post(f"{runs.url}/v1/responses", json={"input": "Are you open?"}, timeout=60)
    page = runs.open()

    page.get_by_role("link", name="Are you open?").first.click()

    expect(page.get_by_role("alert")).to_contain_text("this model is closed")
    expect(page.get_by_text("The run ended before the model had written anything.")).to_be_visible()


def test_a_replay_with_recorded_results_is_the_same(runs: Runs) -> None:
    run = runs.ask("Again", asks_for(("test_next", {})), says("Done."))
    page = runs.open(run)

    page.get_by_role("button", name="With recorded results").click()

    expect(page.locator(".replay-report")).to_contain_text("The same, byte for byte")
    announced(page, "The same, byte for byte")


def test_a_replay_with_the_tools_of_today_shows_what_differs(runs: Runs) -> None:
    run = runs.ask("Again", asks_for(("test_next", {}), ("test_order", {"item": "mug"})), says("Done."))
    page = runs.open(run)

    page.get_by_role("button", name="With the tools of today").click()

    expect(page.locator(".replay-report")).to_contain_text("1 of 2 results differ")
    difference = page.get_by_role("region", name="Difference of test_next")
    expect(difference.locator(".removed").last).to_contain_text('"number"')
    expect(difference.locator(".added").last).to_contain_text('"number"')


def test_a_replay_asks_before_it_calls_what_may_have_effects(runs: Runs) -> None:
    run = runs.ask("Refuse again", asks_for(("test_refuse", {})), says("Done."))
    page = runs.open(run)

    page.get_by_role("button", name="With the tools of today").click()
    expect(page.get_by_text("test_refuse: they would do it again")).to_be_visible()
    page.get_by_role("button", name="Call them anyway").click()

    expect(page.locator(".replay-report")).to_contain_text("The same, byte for byte")


def test_a_run_that_is_not_there_says_so(runs: Runs) -> None:
    page = runs.open("resp_nothing")

    expect(page.get_by_text("There is no such run")).to_be_visible()
    expect(page.get_by_role("link", name="All runs")).to_be_visible()


def test_the_keyboard_opens_and_closes_a_row(runs: Runs) -> None:
    run = runs.ask("By keyboard", asks_for(("test_next", {})), says("Done."))
    page = runs.open(run)

    row(page, "test_next").focus()
    page.keyboard.press("Enter")
    expect(row(page, "test_next")).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("Enter")

    expect(row(page, "test_next")).to_have_attribute("aria-expanded", "false")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "scene", ["list", "answer", "call", "events", "dead", "delivered", "waiting", "replay"]
)
def test_the_view_is_for_everybody(runs: Runs, scene: str, size: str) -> None:
    page = prepared(runs, scene, viewport=SIZES[size])

    assert faults_in_both_themes(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]


def prepared(runs: Runs, scene: str, **look: object) -> Page:
    """Return the page with a scene."""
    if scene == "dead":
        page = runs.open(runs.ask("Dead", asks_for(("test_dead", {})), says("No.")), **look)
        expect(opened(page, "test_dead").get_by_role("alert")).to_be_visible()
        return page
    if scene == "delivered":
        page = runs.open(runs.ask("Often", asks_for(("test_moody", {})), says("At last.")), **look)
        expect(opened(page, "test_moody")).to_contain_text("3 times")
        return page
    if scene == "waiting":
        page = runs.open(runs.ask("Book", asks_for(("test_book", {"seat": "1"}))), **look)
        expect(page.get_by_role("button", name="Approve")).to_be_visible()
        return page
    calls = asks_for(("test_order", {"item": "mug"}), ("test_refuse", {}), ("test_next", {}))
    run = runs.ask("Look at it", calls, says("# Done\n\n`code`"))
    page = runs.open("" if scene == "list" else run, **look)
    if scene == "list":
        expect(page.get_by_role("link", name="Look at it").first).to_be_visible()
    elif scene == "answer":
        expect(opened(page, "Answer")).to_contain_text("code")
    elif scene == "call":
        expect(opened(page, "test_order")).to_contain_text("mug")
    elif scene == "events":
        page.get_by_role("button", name="Raw events").click()
        expect(page.get_by_role("region", name="Events of test_next")).to_be_visible()
    else:
        page.get_by_role("button", name="With the tools of today").click()
        page.get_by_role("button", name="Call them anyway").click()
        expect(page.locator(".replay-report")).to_be_visible()
    return page
