"""The view Tools: the catalogue with its reasons, the way of a call drawn, and a call by hand."""

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.chatting import announced
from tests.browser.conftest import Open
from tests.browser.run_manifests import run_manifests
from tests.browser.test_views import SIZES, faults_in_both_themes
from tests.e2e.local_platform import LocalPlatform


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tools that can be called, and EventTypes that become none."""
    folder = tmp_path_factory.mktemp("manifests")
    run_manifests(folder)
    return folder


@pytest.fixture
def view(platform: LocalPlatform, open_page: Open) -> Open:
    """Open a place of the view."""

    def open_place(place: str = "", **look: object) -> Page:
        return open_page(f"{platform.url}/#/tools/{place}", **look)

    return open_place


def rows(page: Page) -> Locator:
    return page.locator(".tool-row")


def stop(page: Page, kind: str) -> Locator:
    """A station of the drawn way, by its kind."""
    return page.get_by_role("list", name="Route of a call").locator("> li").filter(has_text=kind)


def call(page: Page, tool: str) -> None:
    page.get_by_role("button", name=f"Call {tool}").click()


def test_the_list_holds_tools_and_what_is_none_with_the_reason(view: Open) -> None:
    page = view()

    expect(rows(page).filter(has_text="test_order")).to_contain_text("Ready")
    lonely = rows(page).filter(has_text="test.lonely")
    expect(lonely).to_contain_text("Not ready")
    expect(lonely).to_contain_text("NoTrigger")
    expect(rows(page).filter(has_text="test.half")).to_contain_text("is not JSON")


def test_the_list_is_searched_and_chosen_from(view: Open) -> None:
    page = view()
    expect(rows(page)).not_to_have_count(0)

    page.get_by_label("Search tools").fill("seat book")
    expect(rows(page)).to_have_count(1)
    announced(page, "1 found.")
    page.get_by_label("Search tools").fill("")
    page.get_by_role("button", name="Not ready").click()

    expect(rows(page)).to_have_count(3)
    page.get_by_label("Search tools").fill("nothing is like this")
    expect(page.get_by_text("No tool matches")).to_be_visible()


def test_a_tool_that_is_applied_appears_by_itself(view: Open, manifests: Path) -> None:
    page = view()
    expect(rows(page).filter(has_text="test_order")).to_have_count(1)
    text = (
        (manifests / "next.yaml")
        .read_text()
        .replace("test.next", "test.late")
        .replace("test-next", "test-late")
    )

    (manifests / "late.yaml").write_text(text)

    expect(
        rows(page).filter(has_text="test.late").or_(rows(page).filter(has_text="test_late"))
    ).to_have_count(1)


def test_the_route_of_a_call_is_drawn_station_by_station(view: Open) -> None:
    page = view()
    page.get_by_role("link", name="test_order").click()

    for kind, name in (
        ("EventType", "test.order"),
        ("Broker", "default"),
        ("Trigger", "type = test.order"),
        ("Service", "http://127.0.0.1:"),
        ("Reply", "default-beckon-replies"),
    ):
        expect(stop(page, kind).first).to_contain_text(name)
    expect(stop(page, "Trigger").first).to_contain_text("then to the dead-letter sink")
    expect(page.locator(".stop-ok")).to_have_count(5)
    expect(page.get_by_role("list", name="Route of a call")).to_contain_text("in order")


@pytest.mark.parametrize(
    ("event_type", "kind", "why"),
    [
        ("test.half", "EventType", "is not JSON"),
        ("test.lonely", "Trigger", "no Trigger"),
        ("test.far", "Service", "does not exist; create it"),
    ],
)
def test_the_station_where_a_call_stops_is_marked_and_says_why(
    view: Open, event_type: str, kind: str, why: str
) -> None:
    page = view(f"default/{event_type}")

    broken = page.locator(".stop-broken")
    expect(broken).to_have_count(1)
    expect(broken.locator(".stop-kind")).to_have_text(kind)
    expect(broken).to_contain_text(why)
    expect(broken).to_contain_text("the call stops here")
    expect(page.get_by_role("heading", name="Call this tool")).to_have_count(0)


def test_conditions_are_reported_with_reasons_and_what_they_mean(view: Open) -> None:
    page = view("default/test.far")

    conditions = page.locator(".condition")
    expect(conditions).to_have_count(5)
    expect(conditions.filter(has_text="Routed")).to_contain_text("TriggerNotReady")
    expect(conditions.filter(has_text="Ready").last).to_contain_text("no")


def test_what_the_model_sees_is_shown_in_words_and_as_it_is_sent(view: Open) -> None:
    page = view("test_order")
    seen = page.get_by_role("region", name="What the model sees")

    expect(seen).to_contain_text("Order something from the shop.")
    expect(seen).to_contain_text('one of "small", "large"')
    seen.get_by_role("button", name="JSON").click()

    expect(seen.get_by_role("region", name="The declaration")).to_contain_text('"name": "test_order"')


def test_a_form_calls_the_tool_with_values_of_their_types(view: Open) -> None:
    page = view("test_order")

    page.get_by_label("item string").fill("mug")
    page.get_by_label("count integer").fill("3")
    page.get_by_label("size one of").select_option("large")
    page.get_by_label("gift boolean").select_option("yes")
    page.get_by_label("city string").fill("Oslo")
    page.get_by_label("notes list").fill('["blue", "big"]')
    call(page, "test_order")

    reply = page.get_by_role("region", name="Reply", exact=True)
    announced(page, "test_order has answered.")
    expect(reply).to_contain_text('"count": 3')
    expect(reply).to_contain_text('"size": "large"')
    expect(reply).to_contain_text('"gift": true')
    expect(reply).to_contain_text('"city": "Oslo"')
    expect(reply).to_contain_text('"big"')


def test_a_long_integer_is_sent_and_shown_with_all_of_its_digits(view: Open) -> None:
    """A number of JavaScript would round both."""
    page, number = view("test_square"), 2**53 + 1

    page.get_by_label("number integer").fill(str(number))
    call(page, "test_square")

    reply = page.get_by_role("region", name="Reply", exact=True)
    expect(reply).to_contain_text(f'"number": {number}')
    expect(reply).to_contain_text(str(number**2))


def test_what_is_left_empty_is_left_out(view: Open) -> None:
    page = view("test_order")

    page.get_by_label("item string").fill("mug")
    call(page, "test_order")

    reply = page.get_by_role("region", name="Reply", exact=True)
    expect(reply).to_contain_text("small")
    expect(reply).to_contain_text("place")


def test_values_that_do_not_fit_are_reported_at_their_fields(view: Open) -> None:
    page = view("test_order")

    page.get_by_label("count integer").fill("12")
    page.get_by_label("notes list").fill("[oops")
    page.get_by_label("country string").fill("Norway")
    call(page, "test_order")

    for field, why in (
        ("item string", "item is required."),
        ("count integer", "count is more than 9."),
        ("city string", "city is required."),
    ):
        expect(page.get_by_label(field)).to_have_attribute("aria-invalid", "true")
        expect(page.get_by_text(why)).to_be_visible()
    expect(page.get_by_text("notes is not JSON")).to_be_visible()
    expect(page.get_by_label("item string")).to_be_focused()
    announced(page, "4 values are not right.")


def test_arguments_are_written_as_json_too_and_the_agent_has_the_last_word(view: Open) -> None:
    page = view("test_order")
    page.get_by_label("item string").fill("mug")

    page.get_by_role("button", name="JSON").last.click()
    expect(page.get_by_role("textbox", name="Arguments")).to_have_value('{\n  "item": "mug"\n}')
    page.get_by_role("textbox", name="Arguments").fill('{"item": "mug", "colour": 1, "count": "many"}')
    call(page, "test_order")

    expect(page.get_by_role("alert")).to_contain_text("do not fit")
    expect(page.locator(".problems")).to_contain_text("count")
    page.get_by_role("textbox", name="Arguments").fill("[1]")
    call(page, "test_order")
    expect(page.get_by_text("must be a JSON object")).to_be_visible()


def test_a_tool_that_refuses_is_reported_with_its_words(view: Open) -> None:
    page = view("test_refuse")

    call(page, "test_refuse")

    expect(page.get_by_role("alert")).to_contain_text("there are no seats left")


def test_a_tool_that_wants_approval_is_not_called_by_hand(view: Open) -> None:
    page = view("test_book")

    expect(page.get_by_text("A call needs a person's approval")).to_be_visible()
    expect(page.get_by_role("button", name="Call test_book")).to_have_count(0)


@pytest.mark.parametrize("place", ["test_nothing", "default/test.nothing"])
def test_a_tool_that_is_not_there_says_so(view: Open, place: str) -> None:
    page = view(place)

    expect(page.get_by_text("There is no such tool")).to_be_visible()


def test_the_keyboard_alone_is_enough(view: Open) -> None:
    page = view()
    expect(page.get_by_role("link", name="test_refuse")).to_be_visible()

    page.get_by_role("link", name="test_refuse").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Call test_refuse").focus()
    page.keyboard.press("Enter")

    expect(page.get_by_role("alert")).to_contain_text("no seats left")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scene", ["list", "tool", "broken", "problems", "reply"])
def test_the_view_is_for_everybody(view: Open, scene: str, size: str) -> None:
    page = view({"list": "", "broken": "default/test.far"}.get(scene, "test_order"), viewport=SIZES[size])
    if scene == "list":
        expect(rows(page)).not_to_have_count(0)
    elif scene == "broken":
        expect(page.locator(".stop-broken")).to_have_count(1)
    elif scene == "tool":
        expect(page.get_by_role("heading", name="Call this tool")).to_be_visible()
    else:
        page.get_by_label("item string").fill("mug" if scene == "reply" else "m")
        call(page, "test_order")
        expect(
            page.get_by_role("region", name="Reply", exact=True)
            if scene == "reply"
            else page.get_by_text("fewer than 2")
        ).to_be_visible()

    assert faults_in_both_themes(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size]["width"]
