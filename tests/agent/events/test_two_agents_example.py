"""The example `two-agents`, as it is shipped: one agent is the tool of the other."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from beckon_contract.catalogue.builder import build_catalogue
from beckon_contract.catalogue.check import check
from beckon_contract.kubernetes_objects import Resource, Unreadable, parse_manifests
from beckon_contract.resources.agent_resource import AgentResource, is_agent, read_agent
from tests.agent.event_platform import event_platform
from tests.agent.events.answering_agent import answering_agent
from tests.agent.running_agent import running_agent
from tests.agent.scripted_model import asks_for, says

EXAMPLES = Path(__file__).resolve().parents[3] / "deploy" / "examples"
FOLDER = EXAMPLES / "two-agents"
Manifest = dict[str, Any]


def applied() -> list[Manifest]:
    """Return the objects of the example."""
    texts = [path.read_text("utf-8") for path in sorted(FOLDER.glob("*.yaml"))]
    return [manifest for text in texts for manifest in yaml.safe_load_all(text)]


def resources(manifests: list[Manifest]) -> list[Resource | Unreadable]:
    return [found for manifest in manifests for found in parse_manifests(json.dumps(manifest), "example")]


def agents() -> Iterator[AgentResource]:
    for found in resources(applied()):
        if isinstance(found, Resource) and is_agent(found):
            yield read_agent(found)


def test_the_example_has_no_mistakes_and_its_agent_is_a_routed_tool() -> None:
    report = check(resources(applied()))

    assert report.findings == ()
    (tool,) = report.catalogue.tools.values()
    assert (tool.name, tool.routes, tool.timeout) == ("ask_researcher", ("ask-researcher",), 100)


def test_the_editor_has_the_researcher_and_the_researcher_has_tools_that_ship() -> None:
    texts = [path.read_text("utf-8") for path in EXAMPLES.glob("*/*.yaml") if path.parent != FOLDER]
    shipped = [found for text in texts for found in parse_manifests(text, "shipped")]
    tools = build_catalogue([*shipped, *resources(applied())]).tools.values()

    chosen = {agent.name: {tool.name for tool in tools if agent.tools.selects(tool)} for agent in agents()}

    assert chosen == {"editor": {"ask_researcher"}, "researcher": {"calculator", "current_time"}}


async def test_the_editor_asks_the_researcher_through_the_trigger_of_the_example(tmp_path: Path) -> None:
    call = ("ask_researcher", {"question": "What is 17% of 2340?"})
    async with answering_agent(says("397.8")) as researcher:
        manifests = applied()
        (trigger,) = [manifest for manifest in manifests if manifest["kind"] == "Trigger"]
        path = urlsplit(trigger["spec"]["subscriber"]["uri"]).path
        trigger["spec"]["subscriber"]["uri"] = researcher.url + path
        async with (
            event_platform(tmp_path, [], {}, *manifests) as platform,
            running_agent(platform.shim, tmp_path, asks_for(call), says("It is 397.8.")) as editor,
        ):
            answer = await editor.ask()

            assert answer.text == "It is 397.8."
            assert [made["result"] for made in answer.finished] == [{"answer": "397.8"}]
            assert researcher.requests[0].body["messages"][1]["content"] == "What is 17% of 2340?"
