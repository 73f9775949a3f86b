"""An EventType and a Trigger make an agent the tool of another: over a real Broker and a real shim."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from beckon_agent.chain import Chain
from beckon_agent.faces.events.intake import Rules
from beckon_contract.events import CloudEvent, to_binary
from tests.agent.event_platform import EventPlatform, described, event_platform
from tests.agent.events.answering_agent import AnsweringAgent, Setup, answering_agent, asking
from tests.agent.running_agent import running_agent
from tests.agent.scripted_model import Script, asks_for, refuses, says

PARAMETERS = '{"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}'
QUESTION = ("ask_researcher", {"question": "How far is the moon?"})


@asynccontextmanager
async def researcher(
    folder: Path, *script: Script, rules: Rules | None = None
) -> AsyncIterator[tuple[AnsweringAgent, EventPlatform]]:
    """Serve an agent behind a Broker whose Trigger brings it the events of type `ask.researcher`."""
    tool = described("ask.researcher", "researcher", parameters=PARAMETERS)
    async with answering_agent(*script, setup=Setup(rules=rules or Rules())) as agent:
        addresses = {"researcher": f"{agent.url}/events/researcher"}
        async with event_platform(folder, [], addresses, *tool) as platform:
            yield agent, platform


async def test_a_model_asks_another_agent_and_works_with_its_answer(tmp_path: Path) -> None:
    async with (
        researcher(tmp_path, says("384,400 km.")) as (other, platform),
        running_agent(platform.shim, platform.folder, asks_for(QUESTION), says("Far.")) as front,
    ):
        answer = await front.ask()

        assert answer.text == "Far."
        assert [call["result"] for call in answer.finished] == [{"answer": "384,400 km."}]
        assert other.asked[0].body["messages"][1]["content"] == "How far is the moon?"
        (ask,) = other.asks
        assert ask.run.request["event"]["source"] == "/beckon/agents/default/beckon"  # type: ignore[index]  # a JSON object


async def test_an_agent_whose_model_fails_tells_the_caller_so(tmp_path: Path) -> None:
    async with (
        researcher(tmp_path, refuses(400, "no credit left")) as (_, platform),
        running_agent(platform.shim, platform.folder, asks_for(QUESTION), says("Sorry.")) as front,
    ):
        answer = await front.ask()

        assert answer.error["reason"] == "tool_failed"
        assert "no credit left" in answer.error["message"]


async def send(platform: EventPlatform, event: CloudEvent) -> httpx.Response:
    headers, body = to_binary(event)
    async with httpx.AsyncClient(timeout=20) as http:
        return await http.post(f"{platform.shim}/default/default", content=body, headers=dict(headers))


async def test_a_chain_that_is_too_deep_becomes_a_dead_letter_with_the_reason_after_one_try(
    tmp_path: Path,
) -> None:
    async with researcher(tmp_path, rules=Rules(max_depth=2)) as (other, platform):
        event = asking(beckondepth=3).without("correlationid")
        response = await send(platform, event)

        assert response.status_code == 502
        document = response.json()
        assert document["code"] == 403
        assert document["delivered"] is False
        assert document["reason_text"].startswith("this would be agent 3 in a chain")
        assert other.deliveries == ["/events/researcher"]
        assert other.asks == []


async def test_depth_and_budget_travel_through_shim_and_broker_and_back(tmp_path: Path) -> None:
    async with researcher(tmp_path, says("Yes.")) as (other, platform):
        event = asking(beckondepth=1, beckonbudget=500).without("correlationid")
        response = await send(platform, event)

        assert response.status_code == 200
        assert response.json() == {"answer": "Yes."}
        assert (response.headers["ce-beckondepth"], response.headers["ce-beckonbudget"]) == ("2", "500")
        assert other.asks[0].options.chain == Chain(1, 500)
