"""An EventType and a Trigger make an agent the tool of another: over a real Broker and a real shim."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from beckon_agent.api.events.request import EventRules
from beckon_agent.core.run_types import CallBudget, Limits
from beckon_contract.cloudevents.events import CloudEvent, to_binary
from tests.agent.event_platform import EventPlatform, described, event_platform
from tests.agent.events.answering_agent import AnsweringAgent, Setup, answering_agent, asking, held
from tests.agent.running_agent import Setup as AgentSetup
from tests.agent.running_agent import running_agent
from tests.agent.scripted_model import Script, asks_for, chunk, refuses, says, streamed
from tests.patience import PATIENCE

PARAMETERS = '{"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}'
QUESTION = ("ask_researcher", {"question": "How far is the moon?"})


@asynccontextmanager
async def researcher(
    folder: Path, *script: Script, rules: EventRules | None = None
) -> AsyncIterator[tuple[AnsweringAgent, EventPlatform]]:
    """Serve an agent behind a Broker whose Trigger brings it the events of type `ask.researcher`."""
    tool = described("ask.researcher", "researcher", parameters=PARAMETERS)
    async with answering_agent(*script, setup=Setup(rules=rules or EventRules())) as agent:
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
        assert other.requests[0].body["messages"][1]["content"] == "How far is the moon?"
        (ask,) = other.asks
        assert ask.run.request["event"]["source"] == "/beckon/agents/default/beckon"  # type: ignore[index]  # a JSON object


async def test_what_an_agent_used_counts_for_the_one_that_called_it(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100}
    dear = streamed(chunk({"content": "384,400 km."}, "stop"), {**chunk(), "choices": [], "usage": usage})
    setup = AgentSetup(limits=Limits(call_timeout=10, tokens=150))
    twice = [asks_for(QUESTION), asks_for(QUESTION), says("never asked")]
    async with (
        researcher(tmp_path, dear, dear) as (other, platform),
        running_agent(platform.shim, platform.folder, *twice, setup=setup) as front,
    ):
        answer = await front.ask()

        assert [ask.options.chain.budget for ask in other.asks] == [150, 50]
        assert answer.text == "[stopped: the run used as many tokens as it may use]"
        assert len(front.requests) == 2


async def test_agents_that_are_called_side_by_side_share_what_is_left(tmp_path: Path) -> None:
    setup = AgentSetup(limits=Limits(call_timeout=10, tokens=300))
    wrong: tuple[str, dict[str, object]] = ("ask_researcher", {})  # refused, and in need of nothing
    async with (
        researcher(tmp_path, *[says("384,400 km.")] * 3) as (other, platform),
        running_agent(
            platform.shim,
            platform.folder,
            asks_for(QUESTION, wrong, QUESTION),
            asks_for(QUESTION),
            says("Far."),
            setup=setup,
        ) as front,
    ):
        answer = await front.ask()

        assert answer.text == "Far."
        assert [ask.options.chain.budget for ask in other.asks] == [150, 150, 300]


async def test_who_is_called_after_another_shares_what_that_one_left(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100}
    dear = streamed(chunk({"content": "384,400 km."}, "stop"), {**chunk(), "choices": [], "usage": usage})
    setup = AgentSetup(limits=Limits(call_timeout=10, tokens=600, parallel_calls=1))
    async with (
        researcher(tmp_path, *[dear] * 3) as (other, platform),
        running_agent(
            platform.shim, platform.folder, asks_for(*[QUESTION] * 3), says("Far."), setup=setup
        ) as front,
    ):
        answer = await front.ask()

        assert answer.text == "Far."
        assert [ask.options.chain.budget for ask in other.asks] == [200, 250, 400]


async def test_the_share_of_an_agent_that_gives_no_answer_in_time_is_for_the_next(tmp_path: Path) -> None:
    setup = AgentSetup(limits=Limits(call_timeout=2, tokens=600, parallel_calls=1))
    silent, never_opened = held()
    async with (
        researcher(tmp_path, silent, says("384,400 km."), says("384,400 km.")) as (other, platform),
        running_agent(
            platform.shim, platform.folder, asks_for(*[QUESTION] * 3), says("Far."), setup=setup
        ) as front,
    ):
        answer = await front.ask()

        assert answer.finished[0]["result"]["error"]["reason"] == "timeout"
        assert [ask.options.chain.budget for ask in other.asks] == [200, 300, 600]
        assert not never_opened.is_set()


async def test_an_agent_whose_model_fails_is_an_error_for_the_caller(tmp_path: Path) -> None:
    async with (
        researcher(tmp_path, refuses(400, "no credit left")) as (_, platform),
        running_agent(platform.shim, platform.folder, asks_for(QUESTION), says("Sorry.")) as front,
    ):
        answer = await front.ask()

        assert answer.error["reason"] == "tool_failed"
        assert "no credit left" in answer.error["message"]


async def send(platform: EventPlatform, event: CloudEvent) -> httpx.Response:
    headers, body = to_binary(event)
    async with httpx.AsyncClient(timeout=PATIENCE) as http:
        return await http.post(f"{platform.shim}/default/default", content=body, headers=dict(headers))


async def test_a_chain_that_is_too_deep_becomes_a_dead_letter_with_the_reason_after_one_try(
    tmp_path: Path,
) -> None:
    async with researcher(tmp_path, rules=EventRules(max_depth=2)) as (other, platform):
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
        assert other.asks[0].options.chain == CallBudget(1, 500)
