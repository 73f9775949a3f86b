"""What a model is sent of five thousand tools, over real HTTP, and how it reaches the others."""

import json
from dataclasses import replace

import pytest

from beckon_contract.catalogue.builder import Catalogue
from tests.agent.conftest import StartAgent
from tests.agent.event_platform import EventPlatform
from tests.agent.many.plenty import LIMIT, MANY, SETUP, filler, sent, surround
from tests.agent.running_agent import user
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH

pytestmark = pytest.mark.asyncio(loop_scope="module")

ECHO = ("test_echo", {"text": "hi"})
SEARCH = ("find_tools", {"query": "say something again"})


async def test_a_request_has_what_fits_and_find_tools_first(start_agent: StartAgent) -> None:
    async with start_agent(says("Done."), setup=SETUP) as agent:
        surround(agent)
        await agent.ask(user("Please export the booking of division 17"))

        names = sent(agent.requests[0])
        assert len(names) == len(set(names)) <= LIMIT
        assert names[0] == "find_tools"
        assert filler(174).name in names
        assert await agent.metric("model_tools_sum", agent="beckon") == len(names)


async def test_pinned_tools_come_first_whichever_of_their_names_is_pinned(start_agent: StartAgent) -> None:
    first, second = filler(31), filler(4448)
    pinned = (first.event_type, second.name, "unknown.type")
    async with start_agent(says("a"), says("b"), setup=replace(SETUP, pinned=pinned)) as agent:
        surround(agent)
        await agent.ask(user("Please export the invoice"))
        await agent.ask(user("Merge the meetings"))

        for request in agent.requests:
            assert sent(request)[1:3] == [first.name, second.name]


async def test_what_was_sent_stays_where_it_is_while_a_run_goes_on(start_agent: StartAgent) -> None:
    async with start_agent(*[asks_for(ECHO)] * 3, says("Done."), setup=SETUP) as agent:
        surround(agent)
        await agent.ask(user("Rename the contracts, then close the booking"))

        first, *others = map(sent, agent.requests)
        assert len(others) == 3
        assert all(names[: len(first)] == first for names in others)


async def test_a_client_that_comes_back_with_its_conversation_meets_the_same_tools(
    start_agent: StartAgent,
) -> None:
    talk = [user("Rename the contracts"), {"role": "assistant", "content": "Done."}, user("Merge the orders")]
    async with start_agent(says("Done."), says("Done."), setup=SETUP) as agent:
        surround(agent)
        await agent.ask(*talk[:1])
        await agent.ask(*talk)

        first, second = map(sent, agent.requests)
        assert second[: LIMIT // 2] == first[: LIMIT // 2]
        assert any(name.endswith("_merge_order") for name in second)


async def test_find_tools_brings_in_a_tool_that_is_then_called(
    start_agent: StartAgent, platform: EventPlatform
) -> None:
    async with start_agent(asks_for(SEARCH), asks_for(ECHO), says("It said it."), setup=SETUP) as agent:
        surround(agent)
        before = await platform.metric("calls_total")
        answer = await agent.ask(user("Archive it"))

        assert "test_echo" not in sent(agent.requests[0])
        assert "test_echo" in sent(agent.requests[1])
        search, echo = answer.finished
        assert search["name"] == "find_tools"
        assert "test_echo" in [tool["name"] for tool in search["result"]["tools"]]
        assert (echo["name"], echo["result"], BENCH.calls) == ("test_echo", "hi", ["hi"])
        shown = [m["content"] for m in agent.requests[1].body["messages"] if m["role"] == "tool"]
        assert json.loads(shown[0]) == search["result"]
        # A search is no event: of the two calls one went through the shim.
        assert await platform.metric("calls_total") - before == 1
        assert await agent.metric("tool_calls_total", tool="find_tools", outcome="answered") == 1


async def test_a_search_with_arguments_that_do_not_fit_is_shown_to_the_model(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(("find_tools", {"limit": 0})), says("Sorry."), setup=SETUP) as agent:
        surround(agent)

        assert (await agent.ask()).error["reason"] == "invalid_arguments"


async def test_a_tool_that_is_not_sent_can_still_be_called_by_its_name(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(ECHO), says("Done."), setup=SETUP) as agent:
        surround(agent)
        answer = await agent.ask(user("Archive it"))

        assert "test_echo" not in sent(agent.requests[0])
        assert [event["result"] for event in answer.finished] == ["hi"]


@pytest.mark.parametrize(("model", "most"), [("m", 128), ("qwen3:8b", 16), ("gemma3:4b", 8)])
async def test_no_request_has_more_tools_than_its_model_takes(
    start_agent: StartAgent, model: str, most: int
) -> None:
    limits = replace(SETUP.limits, tools=1000)
    setup = replace(SETUP, model=model, limits=limits, pinned=tuple(filler(n).name for n in range(200)))
    async with start_agent(says("Done."), setup=setup) as agent:
        surround(agent)
        await agent.ask(user("Export every invoice of every division"))

        assert len(sent(agent.requests[0])) == most


async def test_tools_that_are_few_enough_are_all_sent_without_find_tools(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(SEARCH), says("Done."), setup=SETUP) as agent:
        answer = await agent.ask()

        assert sent(agent.requests[0]) == list(agent.catalogue.current.tools)
        assert answer.error["reason"] == "unknown_tool"


async def test_a_request_without_tools_searches_none(start_agent: StartAgent) -> None:
    async with start_agent(says("Hello."), setup=SETUP) as agent:
        surround(agent)
        await agent.ask(tool_choice="none")

        assert "tools" not in agent.requests[0].body


async def test_a_function_of_the_clients_cannot_be_called_find_tools(start_agent: StartAgent) -> None:
    function = {"name": "find_tools", "parameters": {"type": "object", "properties": {}}}
    async with start_agent(setup=SETUP) as agent:
        answer = await agent.post(tools=[{"type": "function", "function": function}])

    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "tool_name_taken"
    assert "the agent has a tool 'find_tools' already" in answer.json()["error"]["message"]


async def test_a_new_tool_is_sent_in_the_very_next_request_that_names_it(start_agent: StartAgent) -> None:
    async with start_agent(says("a"), says("b"), says("c"), setup=SETUP) as agent:
        surround(agent)
        question = user("Use kettle_boil, please")
        await agent.ask(question)
        tools = dict(agent.catalogue.current.tools)
        agent.catalogue.current = Catalogue(tools | {"kettle_boil": replace(filler(1), name="kettle_boil")})
        await agent.ask(question)
        agent.catalogue.current = Catalogue(tools)
        await agent.ask(question)

        assert ["kettle_boil" in sent(request) for request in agent.requests] == [False, True, False]


async def test_the_catalogue_is_shown_whole(start_agent: StartAgent) -> None:
    async with start_agent(setup=SETUP) as agent:
        surround(agent)
        listed = (await agent.http.get("/tools")).json()["tools"]

        assert len(listed) == MANY
        assert "find_tools" not in [tool["name"] for tool in listed]
