"""Many tools at the face of Open Responses: a search is an item of the server's, and its name is taken."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.agent.many.plenty import LIMIT, SETUP, filler, sent, surround
from tests.agent.responses.conftest import StartFace, start_face
from tests.agent.responses.running_face import kinds
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH

__all__ = ["start_face"]  # the fixture

pytestmark = pytest.mark.asyncio(loop_scope="module")

SEARCH = asks_for(("find_tools", {"query": "say something again"}))
ECHO = asks_for(("test_echo", {"text": "hi"}))
SOME = 600


def function(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}}


async def test_a_search_is_an_item_of_the_servers(start_face: StartFace) -> None:
    script = [SEARCH, ECHO, says("Done.")]
    async with start_face(*script, *script, setup=SETUP) as face:
        surround(face.agent, SOME)
        whole = await face.ask("Archive it")
        events = await face.stream("Archive it")
        stored = await face.get(whole["id"])

    search, echo, message = whole["output"]
    assert stored == whole
    assert (search["type"], search["name"], search["status"]) == ("mcp_call", "find_tools", "completed")
    assert json.loads(search["arguments"]) == {"query": "say something again"}
    assert "test_echo" in [tool["name"] for tool in json.loads(search["output"])["tools"]]
    assert (echo["name"], echo["output"], message["type"]) == ("test_echo", "hi", "message")
    assert BENCH.calls == ["hi", "hi"]
    assert "mcp_call.completed" in kinds(events)


async def test_what_was_found_is_there_in_the_responses_that_follow(start_face: StartFace) -> None:
    async with start_face(SEARCH, says("Found."), says("a"), says("b"), setup=SETUP) as face:
        surround(face.agent, SOME)
        first = await face.ask("Archive it")
        await face.ask("Go on", previous_response_id=first["id"])
        await face.ask(
            [
                {"role": "user", "content": "Archive it"},
                *first["output"],
                {"role": "user", "content": "Go on"},
            ]
        )

        _, second, *others = map(sent, face.agent.requests)
        assert "test_echo" in second
        assert others == [second] * 2


async def test_searches_count_among_the_calls_that_a_request_allows(start_face: StartFace) -> None:
    async with start_face(SEARCH, ECHO, says("Sorry."), setup=SETUP) as face:
        surround(face.agent, SOME)
        search, echo, _ = (await face.ask("Archive it", max_tool_calls=1))["output"]

    assert search["status"] == "completed"
    assert echo["error"]["content"]["reason"] == "denied"
    assert BENCH.calls == []


@pytest.mark.parametrize("many", [0, SOME])
async def test_a_function_of_the_clients_cannot_have_its_name(start_face: StartFace, many: int) -> None:
    async with start_face(setup=SETUP) as face:
        surround(face.agent, many)
        answer = await face.post(tools=[function("look_up"), function("find_tools")])

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == ("tool_name_taken", "tools.1.name")
    assert error["message"].startswith("tools.1.name: the agent has a tool 'find_tools' already; give the")


async def test_the_clients_functions_are_all_sent_and_count(start_face: StartFace) -> None:
    async with start_face(says("a"), says("b"), setup=SETUP) as face:
        surround(face.agent, SOME)
        await face.ask("Rename the contracts", tools=[function(f"f{n}") for n in range(10)])
        await face.ask("Rename the contracts", tools=[function(f"f{n}") for n in range(100)])

        some, many = map(sent, face.agent.requests)
        assert some[-10:] == [f"f{n}" for n in range(10)]
        assert 10 < len(some) <= LIMIT
        assert many == ["find_tools", *(f"f{n}" for n in range(100))]


async def test_a_tool_that_must_be_called_is_sent_whatever_the_talk_is_about(start_face: StartFace) -> None:
    choice = {"type": "function", "name": "test_echo"}
    async with start_face(ECHO, says("Done."), setup=SETUP) as face:
        surround(face.agent, SOME)
        await face.ask("Rename the contracts", tool_choice=choice)

        assert all("test_echo" in sent(request) for request in face.agent.requests)


async def test_of_many_tools_those_are_sent_that_the_request_allows(start_face: StartFace) -> None:
    names = ["test_echo", "test_nap", filler(11).name]
    choice = {"type": "allowed_tools", "tools": [{"type": "function", "name": name} for name in names]}
    async with start_face(says("a"), setup=SETUP) as face:
        surround(face.agent, SOME)
        await face.ask("Rename the contracts", tool_choice=choice)
        assert sorted(sent(face.agent.requests[0])) == sorted(names)

    narrow = replace(SETUP, limits=replace(SETUP.limits, tools=2))
    async with start_face(SEARCH, says("c"), setup=narrow) as face:
        surround(face.agent, SOME)
        search, _ = (await face.ask("Rename the contracts", tool_choice=choice))["output"]
        assert [tool["name"] for tool in json.loads(search["output"])["tools"]] == ["test_echo"]
