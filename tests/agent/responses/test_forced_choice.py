"""A forced choice of a tool: sent, or an instruction; checked, with one more request."""

from typing import Any

import pytest

from beckon_contract.catalogue.builder import Catalogue
from tests.agent.conftest import StartAgent
from tests.agent.responses.conftest import StartFace
from tests.agent.running_agent import Setup, payloads
from tests.agent.scripted_model import Reply, asks_for, refuses, says

pytestmark = pytest.mark.asyncio(loop_scope="module")

RESULT: dict[str, Any] = {"city": "Bonn", "degrees": 21}
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
}
FUNCTION = {"name": "final_result", "description": "The final result.", "parameters": PARAMETERS}
TOOL = {"type": "function", "function": FUNCTION}
FINAL = asks_for(("final_result", RESULT))
ECHO = asks_for(("test_echo", {"text": "x"}))
NAMED = {"type": "function", "function": {"name": "final_result"}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [NAMED]}}
SCRIPTS = [
    pytest.param([FINAL], id="at once"),
    pytest.param([says("It is 21 degrees."), FINAL], id="at the second request"),
    pytest.param([refuses(400, "tool_choice is not supported"), FINAL], id="refused and said in words"),
    pytest.param(
        [refuses(400, "tool_choice: must be auto"), says("21"), FINAL],
        id="refused, and at the second request",
    ),
]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("choice", ["required", NAMED, ALLOWED], ids=["required", "named", "allowed"])
async def test_a_forced_function_of_the_client_is_called_in_chat_completions(
    start_agent: StartAgent, script: list[Reply], choice: object
) -> None:
    async with start_agent(*script) as agent:
        response = await agent.post(tools=[TOOL], tool_choice=choice)
        left = agent.model.script

    (answer,) = response.json()["choices"]
    assert (answer["finish_reason"], answer["message"]["content"], left) == ("tool_calls", None, [])
    assert [call["function"]["name"] for call in answer["message"]["tool_calls"]] == ["final_result"]


@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_forced_function_of_the_client_is_called_in_responses(
    start_face: StartFace, script: list[Reply]
) -> None:
    async with start_face(*script) as face:
        response = await face.ask(tools=[{"type": "function", **FUNCTION}], tool_choice="required")

    assert [item["type"] for item in response["output"]] == ["function_call"]
    assert response["tool_choice"] == "required"


async def test_only_allowed_tools_are_offered_to_a_forced_answer(start_agent: StartAgent) -> None:
    async with start_agent(FINAL) as agent:
        await agent.post(tools=[TOOL], tool_choice=ALLOWED)

    body = agent.requests[0].body
    assert body["tool_choice"] == "required"
    assert [tool["function"]["name"] for tool in body["tools"]] == ["final_result"]


async def test_the_text_of_an_answer_without_the_call_is_not_shown(start_agent: StartAgent) -> None:
    async with start_agent(says("It is ", "21."), FINAL) as agent:
        response = await agent.post(tools=[TOOL], tool_choice=NAMED, stream=True)

    assert "It is " not in response.text
    assert [chunk["choices"][0]["finish_reason"] for chunk in payloads(response.text)][-1] == "tool_calls"
    sent = agent.requests[1].body["messages"]
    assert sent[-2:] == [
        {"role": "assistant", "content": "It is 21."},
        {"role": "user", "content": "Call the tool final_result now. Do not answer with text."},
    ]


async def test_a_model_that_makes_no_required_call_is_an_error(start_agent: StartAgent) -> None:
    async with start_agent(says("No."), ECHO, says("No."), says("No.")) as agent:
        response = await agent.post(tools=[TOOL], tool_choice=NAMED)
        streamed = await agent.post(tools=[TOOL], tool_choice="required", stream=True)

    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (400, "tool_choice_not_honoured")
    assert error["param"] == "tool_choice"
    assert "no call of 'final_result'" in error["message"]
    assert "tool_choice_not_honoured" in streamed.text
    assert len(agent.requests) == 4


async def test_a_response_without_its_required_call_has_failed(start_face: StartFace) -> None:
    async with start_face(says("No."), says("No."), says("No."), says("No.")) as face:
        response = await face.post(tool_choice="required")
        events = await face.stream(tool_choice="required")

    assert (response.status_code, response.json()["error"]["code"]) == (400, "tool_choice_not_honoured")
    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["output"] == []
    assert "made no call" in events[-1]["response"]["error"]["message"]


async def test_a_text_dialect_is_forced_by_words(start_agent: StartAgent) -> None:
    call = '<tool_call>\n{"name": "test_echo", "arguments": {"text": "x"}}\n</tool_call>'
    no_schema = refuses(400, "response_format is not supported")
    async with start_agent(no_schema, says(call), says("Done."), setup=Setup(dialect="hermes")) as agent:
        answer = await agent.ask(tool_choice={"type": "function", "function": {"name": "test_echo"}})

    first, second = (request.body["messages"][0]["content"] for request in agent.requests[1:])
    assert "Call the tool test_echo now." in first
    assert "test_nap" not in first
    assert "Call the tool" not in second
    assert answer.text == "Done."


async def test_a_choice_among_no_tools_is_refused(start_agent: StartAgent) -> None:
    nothing = {"mode": "required", "tools": []}
    async with start_agent() as agent:
        none_allowed = await agent.post(tool_choice={"type": "allowed_tools", "allowed_tools": nothing})
        agent.catalogue.current = Catalogue({})
        none_there = await agent.post(tool_choice="required")

    for response in (none_allowed, none_there):
        assert (response.status_code, response.json()["error"]["param"]) == (400, "tool_choice")
