"""Agents that call each other: how deep, for how many tokens, and that no answer is answered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_agent.api.events.request import EventRules
from beckon_agent.core.model_types import Usage
from beckon_agent.core.run_types import CallBudget, Limits, Options
from beckon_contract.cloudevents.events import CloudEvent
from beckon_contract.cloudevents.extensions import DEPTH
from tests.agent.events.answering_agent import Setup, answering_agent, asking, event, problem
from tests.agent.scripted_model import chunk, says, streamed

CALL = {"index": 0, "id": "c0", "type": "function", "function": {"name": "x", "arguments": "{}"}}
USAGE = {**chunk(), "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}


@given(
    st.integers(0, 9),
    st.none() | st.integers(1, 10_000),
    st.none() | st.integers(1, 10_000),
    st.integers(0, 20_000),
)
def test_depth_grows_by_one_and_the_budget_never(
    depth: int, budget: int | None, tokens: int | None, spent: int
) -> None:
    onward = CallBudget(depth, budget).to_attributes(tokens, Usage(spent, 0))
    after = CallBudget.from_event(CloudEvent("1", "/s", "t", extensions=onward))

    assert after.depth == depth + 1
    known = [limit for limit in (budget, tokens) if limit is not None]
    assert after.budget == (max(0, min(known) - spent) if known else None)
    assert after.token_limit(None) == after.budget


@given(st.integers(0, 1000), st.lists(st.tuples(st.booleans(), st.floats(0, 1)), max_size=20), st.data())
def test_calls_side_by_side_never_use_more_than_is_left(
    budget: int, calls: list[tuple[bool, float]], data: st.DataObject
) -> None:
    """Calls are sent and answered in any order, each uses some part of its share."""
    shares: dict[int, int] = {}
    used = 0
    unsent, open_calls = list(range(len(calls))), len(calls)
    while open_calls:
        if unsent and (not shares or data.draw(st.booleans())):
            onward = CallBudget(0, budget).to_attributes(None, None, used, shares=open_calls)
            shares[unsent.pop()] = int(str(onward["beckonbudget"]))
        else:
            answered = data.draw(st.sampled_from(sorted(shares)))
            whole, part = calls[answered]
            share = shares.pop(answered)
            used += share if whole else int(share * part)
            open_calls -= 1

    assert used <= budget


def test_an_event_that_says_nothing_of_a_chain_is_the_beginning_of_one() -> None:
    assert CallBudget.from_event(CloudEvent("1", "/s", "t")) == Options().chain == CallBudget(0, None)


async def test_a_run_knows_its_place_and_its_answer_is_one_deeper() -> None:
    answer = streamed(chunk({"content": "Yes."}, "stop"), USAGE)
    async with answering_agent(answer, setup=Setup(limits=Limits(tokens=500))) as agent:
        reply = await agent.reply(asking(beckondepth=2, beckonbudget=300))

        (ask,) = agent.asks
        assert ask.options.chain == CallBudget(2, 300)
        assert ask.hosted.agent.limits.tokens == 300
        assert CallBudget.from_event(reply) == CallBudget(3, 290)
        assert str(reply.extensions["beckonused"]) == "10"


async def test_the_budget_of_the_chain_ends_a_run_that_would_use_more() -> None:
    first = streamed(chunk({"tool_calls": [CALL]}, "tool_calls"), USAGE)
    async with answering_agent(first, says("never asked")) as agent:
        reply = await agent.reply(asking(beckonbudget=10))

        data = reply.json()
        assert isinstance(data, dict)
        assert data["ending"] == "token_limit"
        assert len(agent.requests) == 1


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"beckondepth": 3}, "the limit is 2"),
        ({"beckondepth": 1, "beckonbudget": 0}, "no tokens left"),
        ({"beckonbudget": -5}, "no tokens left"),
    ],
)
async def test_a_chain_over_its_limits_is_refused_for_good_and_says_why(
    attributes: dict[str, int], said: str
) -> None:
    async with answering_agent(setup=Setup(rules=EventRules(max_depth=2))) as agent:
        response = await agent.send(asking().extended(**attributes))

        # 403 is not among the statuses after which a Broker tries again.
        assert said in problem(response, 403)
        assert agent.requests == []
        assert agent.asks == []


async def test_the_deepest_run_that_is_allowed_is_answered() -> None:
    async with answering_agent(says("Yes."), setup=Setup(rules=EventRules(max_depth=2))) as agent:
        assert (await agent.reply(asking(beckondepth=2))).json() == {"answer": "Yes."}


async def test_an_agents_own_answer_never_starts_it_again() -> None:
    async with answering_agent(says("Something happened."), says("never asked")) as agent:
        reply = await agent.reply(event({"lamp": 1}))

        response = await agent.send(reply)

        assert (response.status_code, response.content) == (204, b"")
        assert len(agent.requests) == 1


async def test_an_answer_that_another_request_waits_for_is_left_to_it() -> None:
    reply = CloudEvent("r1", "/beckon/tools/calculator", "calculator.reply", extensions={"replyid": "t"})
    async with answering_agent() as agent:
        assert (await agent.send(reply)).status_code == 204
        assert agent.requests == []


async def test_two_agents_that_answer_each_other_come_to_an_end() -> None:
    rules = EventRules(max_depth=3)
    async with answering_agent(*[says("And then?")] * 9, setup=Setup(rules=rules)) as agent:
        said = event({"lamp": 1})
        while (response := await agent.send(said)).status_code == 200:
            answer = await agent.reply(said)
            # As the other agent would have said it: it has its own source, and the depth goes on.
            depth = {DEPTH: answer.extensions[DEPTH]}
            said = CloudEvent(
                answer.id, "/other", answer.type, answer.data, "application/json", extensions=depth
            )

        assert "the limit is 3" in problem(response, 403)
        assert len(agent.requests) == 4
