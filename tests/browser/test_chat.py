"""Asking and answering: the flow, its cards, its errors, and what is done with an answer."""

import asyncio
import json
import re
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Page, expect

from tests.agent.scripted_model import Reply, asks_for, chunk, refuses, says, sse, streamed
from tests.browser.chatting import announced, answered, ask, card, turns
from tests.browser.conftest import Open
from tests.e2e.local_platform import LocalPlatform
from tests.e2e.model_thread import ModelThread

MARKDOWN = """## Found it

Some **bold** words, and `code`:

```python
print("hello")
```

| city | people |
| --- | ---: |
| Oslo | 709037 |

- one
- two

Then:

4. four
"""


def holding(*words: str, event: asyncio.Event) -> Reply:
    """Return a reply that waits before its last word."""
    pieces = [sse(chunk({"content": word}), done=False) for word in words]
    return Reply([*pieces, sse(chunk(finish="stop"))], holds=event)


def test_an_answer_is_shown_while_it_is_written(page: Page, model: ModelThread) -> None:
    more = asyncio.Event()
    model.play(holding("It is ", "**nearly** done", event=more))

    ask(page, "How far is it?")
    expect(turns(page).last.locator("strong")).to_have_text("nearly")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    model.let(more)

    answered(page, "It is nearly done")
    announced(page, "The answer is complete.")


def test_the_pages_that_an_answer_cites_are_listed_below_it(page: Page, model: ModelThread) -> None:
    cited = {"url": "https://example.com/tides", "title": "Tides of Oslo", "start_index": 0, "end_index": 4}
    annotation = {"type": "url_citation", "url_citation": cited}
    model.play(
        Reply(
            [
                sse(
                    chunk({"content": "High at noon."}),
                    chunk({"annotations": [annotation]}),
                    chunk(finish="stop"),
                )
            ]
        )
    )

    ask(page, "When is it high?")

    answered(page, "High at noon.")
    link = turns(page).last.get_by_role("list", name="Sources of the answer").get_by_role("link")
    expect(link).to_have_text("Tides of Oslo")
    expect(link).to_have_attribute("href", "https://example.com/tides")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")


def test_markdown_is_drawn_with_its_code_and_tables(page: Page, model: ModelThread) -> None:
    model.play(says(MARKDOWN))

    ask(page, "Show me")
    answered(page, "four")

    answer = turns(page).last
    expect(answer.get_by_role("heading", name="Found it")).to_be_visible()
    expect(answer.locator("figure.code")).to_contain_text("python")
    expect(answer.locator("figure.code code")).to_have_text('print("hello")')
    expect(answer.get_by_role("cell", name="709037")).to_have_css("text-align", "right")
    expect(answer.get_by_role("listitem")).to_have_text(["one", "two", "four"])
    expect(answer.locator("ol")).to_have_attribute("start", "4")


def test_what_a_model_writes_runs_nothing_and_fetches_nothing(
    page: Page, model: ModelThread, problems: list[str]
) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    model.play(
        says(
            '<img src=x onerror="window.hit=1"><script>window.hit=1</script>'
            "<a href='javascript:window.hit=1'>click</a> <form action=/x><button>send</button></form>\n\n"
            "![secret](http://198.51.100.7/p.png?leak) [site](https://example.com/) done"
        )
    )

    ask(page, "Be evil")
    answered(page, "done")

    answer = turns(page).last.locator(".markdown")
    expect(answer.locator("img, script, form, button")).to_have_count(0)
    expect(answer.get_by_role("link", name="secret")).to_have_attribute("rel", "noopener noreferrer nofollow")
    expect(answer.get_by_role("link", name="site")).to_have_attribute("target", "_blank")
    assert answer.locator("a[href^='javascript']").count() == 0
    assert page.evaluate("window.hit") is None
    assert not [url for url in sent if "198.51.100.7" in url]
    # The policy stops the handler even in the document in which the text is cleaned.
    assert all(problem.startswith("Executing inline event handler violates") for problem in problems)
    problems.clear()


def test_a_call_is_a_card_with_arguments_state_time_and_a_link_to_its_events(
    page: Page, model: ModelThread
) -> None:
    model.play(asks_for(("test_cities", {})), says("Three cities."))

    ask(page, "Which cities?")
    answered(page, "Three cities.")

    call = card(page, "test_cities")
    expect(call).to_contain_text("Done")
    expect(call.locator(".call-time")).to_have_text(re.compile(r"\d+ (ms|s)"))
    link = call.get_by_role("link", name="Events of this run")
    expect(link).to_have_attribute("href", re.compile(r"#/runs/resp_[0-9a-f]{32}"))
    call.get_by_role("button", name="test_cities").click()
    expect(call.get_by_role("button", name="test_cities")).to_have_attribute("aria-expanded", "false")
    expect(link).to_be_hidden()


def test_rows_are_a_table_that_sorts_and_a_chart(page: Page, model: ModelThread) -> None:
    model.play(asks_for(("test_cities", {})), says("Three cities."))
    ask(page, "Which cities?")
    answered(page, "Three cities.")
    call = card(page, "test_cities")

    call.get_by_role("button", name="people").click()
    expect(call.locator("tbody tr td:first-child")).to_have_text(["Oslo", "Malmö", "Bergen"])
    expect(call.get_by_role("columnheader", name="people")).to_have_attribute("aria-sort", "descending")
    call.get_by_role("button", name="Chart").click()

    expect(call.get_by_role("img", name="Chart of people")).to_be_visible()
    expect(call.locator(".bar-row")).to_have_count(3)
    call.get_by_role("button", name="Raw").click()
    assert (
        json.loads(call.get_by_role("region", name="Reply of test_cities").inner_text())[0]["city"] == "Oslo"
    )


def test_the_letters_of_a_chart_keep_their_size_on_a_phone(
    open_page: Open, platform: LocalPlatform, model: ModelThread
) -> None:
    page = open_page(platform.url, viewport={"width": 390, "height": 844})
    model.play(asks_for(("test_months", {})), says("Warm."))
    ask(page, "Draw it")
    answered(page, "Warm.")
    page.get_by_role("button", name="Chart").click()

    letters = page.locator(".line-chart text").first
    drawn = "one => one.getBoundingClientRect().width / one.getComputedTextLength()"
    expect(letters).to_be_visible()
    page.wait_for_function("() => document.querySelector('.line-chart').viewBox.baseVal.width < 390")
    assert letters.evaluate(drawn) > 0.9


def test_a_long_file_name_stays_in_the_box_on_a_phone(open_page: Open, platform: LocalPlatform) -> None:
    page = open_page(platform.url, viewport={"width": 390, "height": 844})
    name = "notes-with-a-name-that-is-longer-than-any-phone-is-wide.txt"

    page.get_by_label("Files to attach").set_input_files(
        {"name": name, "mimeType": "text/plain", "buffer": b"hello"}
    )

    expect(page.locator(".file")).to_contain_text("notes")
    box, inner = (page.locator(one).bounding_box() for one in (".composer-box", ".file"))
    assert box is not None
    assert inner is not None
    assert inner["x"] + inner["width"] <= box["x"] + box["width"] <= 390


def test_numbers_over_time_are_a_line(page: Page, model: ModelThread) -> None:
    model.play(asks_for(("test_months", {})), says("It was warm in July."))
    ask(page, "How warm was it?")
    answered(page, "July")

    card(page, "test_months").get_by_role("button", name="Chart").click()

    picture = card(page, "test_months").get_by_role("img", name="Chart of celsius, 12 values")
    expect(picture).to_have_attribute("aria-label", re.compile("-4.2 .* to 17.7 .2025-07"))
    expect(picture.locator(".curve")).to_be_visible()


def test_a_sound_can_be_played(page: Page, model: ModelThread) -> None:
    model.play(asks_for(("test_beep", {})), says("Beep."))
    ask(page, "Beep!")
    answered(page, "Beep.")

    sound = card(page, "test_beep").locator("audio")
    length = sound.evaluate(
        """audio => new Promise((resolve, reject) => {
            if (audio.readyState > 0) resolve(audio.duration);
            audio.onloadedmetadata = () => resolve(audio.duration);
            audio.onerror = () => reject(audio.error.message);
        })"""
    )

    assert length == pytest.approx(0.2, abs=0.01)


def test_the_error_of_a_tool_is_reported_in_its_words(page: Page, model: ModelThread) -> None:
    model.play(asks_for(("test_refuse", {})), says("No seat."))
    ask(page, "A seat?")
    answered(page, "No seat.")

    call = card(page, "test_refuse")
    expect(call).to_contain_text("Failed")
    expect(call).to_contain_text("there are no seats left; ask for another day")
    expect(call).to_contain_text("tool_failed")


def test_an_error_of_the_model_is_reported_and_can_be_tried_again(page: Page, model: ModelThread) -> None:
    model.play(refuses(400, "the model is on holiday"))
    ask(page, "Hello?")
    expect(turns(page).last.get_by_role("alert")).to_contain_text("the model is on holiday")

    model.play(says("I am back."))
    turns(page).last.get_by_role("button", name="Try again").click()

    answered(page, "I am back.")
    expect(turns(page)).to_have_count(1)
    assert [m["content"] for m in model.bodies[0]["messages"] if m["role"] == "user"] == ["Hello?"]


def test_an_answer_that_broke_off_is_shown_as_incomplete_also_after_a_reload(
    page: Page, model: ModelThread
) -> None:
    model.play(streamed(chunk({"content": "The answer is"}), done=False))
    ask(page, "What is it?")
    reason = "The answer is incomplete: the model's server ended it in the middle."

    answered(page, "The answer is")
    expect(turns(page).last).to_contain_text(reason)
    announced(page, "The answer was cut short.")

    page.reload()
    expect(turns(page).last).to_contain_text(reason)
    turns(page).last.get_by_role("link", name=re.compile("run", re.IGNORECASE)).click()
    expect(page.get_by_role("main")).to_contain_text("The run was cut short")
    expect(page.get_by_role("main")).to_contain_text("the model's server ended its answer in the middle")


def test_a_run_can_be_stopped(page: Page, model: ModelThread) -> None:
    model.play(holding("Once upon a time ", "there", event=model.never))
    ask(page, "A long story")
    expect(turns(page).last.locator(".markdown")).to_contain_text("Once upon a time")

    page.get_by_role("button", name="Stop").click()

    expect(turns(page).last).to_contain_text("Stopped. Completed tool calls are not undone.")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    announced(page, "Stopped.")


def test_an_edited_question_replaces_the_old_one(page: Page, model: ModelThread) -> None:
    model.play(says("One."), says("Two."), says("Three."))
    for question, said in (("first", "One."), ("second", "Two."), ("third", "Three.")):
        ask(page, question)
        answered(page, said)
    before = page.url

    model.play(says("Another two."))
    turns(page).nth(1).get_by_role("button", name="Edit the question").click()
    box = page.get_by_role("textbox", name="Edit the question")
    expect(box).to_be_focused()  # by the page, which also puts the cursor at the end of the text
    box.fill("second, but better")
    page.get_by_role("button", name="Ask again").first.click()

    answered(page, "Another two.")
    expect(turns(page)).to_have_count(2)
    messages = [(m["role"], m["content"]) for m in model.bodies[0]["messages"] if m["role"] != "system"]
    assert messages == [("user", "first"), ("assistant", "One."), ("user", "second, but better")]
    assert page.url != before


def test_an_answer_can_be_requested_again(page: Page, model: ModelThread) -> None:
    model.play(says("Heads."), says("Tails."))
    ask(page, "Toss a coin")
    answered(page, "Heads.")

    turns(page).last.get_by_role("button", name="Ask again").click()

    answered(page, "Tails.")
    expect(turns(page)).to_have_count(1)
    assert [m["content"] for m in model.bodies[1]["messages"] if m["role"] == "user"] == ["Toss a coin"]


def test_images_and_texts_go_with_a_question(page: Page, model: ModelThread) -> None:
    pixel = bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
    )
    model.play(says("A pixel and a list."))
    page.get_by_label("Files to attach").set_input_files(
        [
            FilePayload(name="pixel.png", mimeType="image/png", buffer=pixel),
            FilePayload(name="list.csv", mimeType="text/csv", buffer=b"a,b\n1,2\n"),
        ]
    )
    expect(page.locator(".composer .file")).to_have_count(2)

    ask(page, "What is this?")
    answered(page, "A pixel and a list.")

    parts: list[dict[str, Any]] = model.bodies[0]["messages"][-1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url", "text"]
    assert parts[1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert '<file name="list.csv">\na,b\n1,2\n' in parts[2]["text"]
    expect(turns(page).last.locator(".bubble img")).to_be_visible()
    expect(turns(page).last.locator(".bubble")).to_contain_text("list.csv")
    expect(turns(page).last.locator(".bubble")).not_to_contain_text("a,b")


def test_a_file_that_is_too_large_is_refused_before_it_is_sent(page: Page, model: ModelThread) -> None:
    page.get_by_label("Files to attach").set_input_files(
        [FilePayload(name="huge.pdf", mimeType="application/pdf", buffer=b"0" * 6_000_001)]
    )

    expect(page.locator(".composer")).to_contain_text("huge.pdf is too large to send (over 6 MB).")
    expect(page.locator(".composer .file")).to_have_count(0)


def test_enter_with_shift_begins_a_new_line(page: Page, model: ModelThread) -> None:
    model.play(says("Two lines."))
    field = page.get_by_label("Your question")

    field.press_sequentially("one")
    field.press("Shift+Enter")
    field.press_sequentially("two")
    field.press("Enter")

    answered(page, "Two lines.")
    assert model.bodies[0]["messages"][-1]["content"] == "one\ntwo"


def test_thoughts_are_folded_away(page: Page, model: ModelThread) -> None:
    thought = sse(chunk({"reasoning_content": "Let me see."}), done=False)
    model.play(Reply([thought, sse(chunk({"content": "Seen."}), chunk(finish="stop"))]))

    ask(page, "Look")
    answered(page, "Seen.")

    thoughts = turns(page).last.locator("details")
    expect(thoughts.locator(".markdown")).to_be_hidden()
    thoughts.get_by_text("Thoughts").click()
    expect(thoughts.locator(".markdown")).to_have_text("Let me see.")


def test_the_page_asks_no_one_but_its_agent(open_page: Open, platform: LocalPlatform) -> None:
    page = open_page("about:blank")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))

    page.goto(platform.url)
    page.get_by_label("Your question").wait_for()

    assert len(sent) > 20
    assert [url for url in sent if not url.startswith((platform.url, "blob:", "data:"))] == []


def test_an_agent_that_has_gone_is_reported_and_another_one_can_be_called(
    open_page: Open, platform: LocalPlatform, model: ModelThread
) -> None:
    page = open_page("about:blank")
    agents = [{"id": name, "object": "model", "owned_by": "beckon"} for name in ("beckon", "team/other")]
    # The second has gone since the list was read.
    page.route("**/v1/models", lambda route: route.fulfill(json={"object": "list", "data": agents}))
    page.goto(platform.url)
    model.play(says("From the first."))

    page.get_by_label("Agent").select_option("team/other")
    ask(page, "Who is there?")

    expect(turns(page).last.get_by_role("alert")).to_contain_text("there is no agent 'team/other'")
    page.get_by_label("Agent").select_option("beckon")
    turns(page).last.get_by_role("button", name="Try again").click()
    answered(page, "From the first.")
