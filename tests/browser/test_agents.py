"""Several agents behind one page: each answers with its own words and tools, and is chosen by its name."""

from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.agent.scripted_model import asks_for, says
from tests.browser.chatting import answered, ask, card, turns
from tests.browser.conftest import SERVE, Open
from tests.e2e.conftest import Start
from tests.e2e.local_platform import LocalPlatform
from tests.e2e.manifests import tool_manifests
from tests.e2e.model_thread import ModelThread

AGENT = """
apiVersion: beckon.dev/v1alpha1
kind: Agent
metadata: {{name: {name}}}
spec:
  systemPrompt: {prompt}
  tools: {{names: [{tool}]}}
---
"""
AGENTS = AGENT.format(name="guide", prompt="You know towns.", tool="test.cities") + AGENT.format(
    name="clerk", prompt="You know the weather.", tool="test.months"
)


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tools, and two Agents that have one each."""
    folder = tmp_path_factory.mktemp("manifests")
    for name in ("cities", "months"):
        text = tool_manifests(f"test-{name}", f"Tell of {name}.", {}, command=SERVE + name)
        (folder / f"{name}.yaml").write_text(text)
    (folder / "agents.yaml").write_text(AGENTS)
    return folder


@pytest.fixture(scope="module")
def platform(start_platform: Start, manifests: Path, model: ModelThread) -> LocalPlatform:
    """A platform with them."""
    return start_platform(manifests, OPENAI_BASE_URL=model.base_url, BECKON_MODEL="scripted")


def choices(page: Page) -> list[str]:
    """The names of the agents that can be chosen, once they are there."""
    expect(page.get_by_label("Agent")).to_be_visible()
    return page.get_by_label("Agent").locator("option").all_inner_texts()


def what_was_requested(model: ModelThread) -> tuple[str, list[str]]:
    """The system's message and the names of the tools that the model was sent last."""
    body = model.bodies[-1]
    names = [one["function"]["name"] for one in body.get("tools", [])]
    return str(body["messages"][0]["content"]), names


def test_the_agent_that_was_chosen_answers_with_its_own_prompt_and_tools(
    page: Page, model: ModelThread
) -> None:
    assert choices(page) == ["beckon", "clerk", "guide"]
    model.play(asks_for(("test_months", {})), says("It is cold."))

    page.get_by_label("Agent").select_option("clerk")
    ask(page, "How is it there?")

    answered(page, "It is cold.")
    expect(card(page, "test_months")).to_contain_text("Done")
    prompt, tools = what_was_requested(model)
    assert "You know the weather." in prompt
    assert tools == ["test_months"]


def test_another_agent_may_go_on_with_a_conversation(page: Page, model: ModelThread) -> None:
    page.get_by_label("Agent").select_option("guide")
    model.play(says("Oslo."))
    ask(page, "Which town?")
    answered(page, "Oslo.")
    assert what_was_requested(model)[1] == ["test_cities"]

    page.get_by_label("Agent").select_option("clerk")
    model.play(says("Mild."))
    ask(page, "And the weather?")
    answered(page, "Mild.")

    prompt, tools = what_was_requested(model)
    assert "You know the weather." in prompt
    assert tools == ["test_months"]
    assert "Which town?" in str(model.bodies[-1]["messages"])
    expect(turns(page)).to_have_count(2)


def test_the_choice_stays_with_the_browser(page: Page) -> None:
    page.get_by_label("Agent").select_option("guide")
    page.reload()

    expect(page.get_by_label("Agent")).to_have_value("guide")


def test_the_tools_are_those_of_the_agent(page: Page) -> None:
    page.get_by_role("link", name="Tools", exact=True).click()
    page.get_by_label("Agent").select_option("clerk")

    expect(page.locator(".tool-row").filter(has_text="Ready")).to_have_count(1)
    page.get_by_role("link", name="test_months").click()
    expect(page.locator(".stop-ok")).to_have_count(5)
    page.get_by_role("button", name="Call test_months").click()

    expect(page.get_by_role("region", name="Reply", exact=True)).to_contain_text("2025-01")


def test_a_run_shows_which_agent_it_was(page: Page, platform: LocalPlatform, model: ModelThread) -> None:
    model.play(says("Bergen."))
    request = {"model": "guide", "input": "Which other town?"}
    run = httpx.post(f"{platform.url}/v1/responses", json=request, timeout=60).json()["id"]

    page.goto(f"{platform.url}/#/runs/{run}")

    expect(page.locator(".run-state")).to_contain_text("guide")


def test_agents_that_come_and_go_are_seen_without_a_reload(
    open_page: Open, platform: LocalPlatform, manifests: Path
) -> None:
    page = open_page(platform.url)
    assert "late" not in choices(page)

    late = manifests / "late.yaml"
    late.write_text(AGENT.format(name="late", prompt="You come late.", tool="test.cities"))
    expect(page.get_by_label("Agent").locator("option", has_text="late")).to_have_count(1)
    late.unlink()

    expect(page.get_by_label("Agent").locator("option", has_text="late")).to_have_count(0)
