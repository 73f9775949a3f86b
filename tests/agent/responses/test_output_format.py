"""Answers of a JSON Schema: from servers that hold to it, and from those that do not."""

import json
from typing import Any

import pytest

from tests.agent.conftest import StartAgent
from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import said
from tests.agent.running_agent import Setup
from tests.agent.scripted_model import Reply, asks_for, chunk, refuses, says, streamed

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCHEMA = {
    "type": "object",
    "properties": {"degrees": {"type": "integer"}},
    "required": ["degrees"],
    "additionalProperties": False,
}
NAMED = {"name": "weather", "schema": SCHEMA, "strict": True}
FORMAT = {"type": "json_schema", "json_schema": NAMED}
OBJECT = {"type": "json_object"}
GOOD = says('{"degrees"', ": 21}")
BAD = says('{"degrees": "21"}')
ECHO = asks_for(("test_echo", {"text": "x"}))
NO_FORMAT = refuses(400, "'response_format' of type 'json_schema' is not supported with this model")
NOT_WITH_TOOLS = refuses(400, "Cannot use custom grammar constraints with tools.")


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([GOOD], id="valid at once"),
        pytest.param([ECHO, GOOD], id="after a call"),
        pytest.param([BAD, GOOD], id="wrong type, repaired"),
        pytest.param([says("It is 21 degrees."), GOOD], id="prose, repaired"),
        pytest.param([says('```json\n{"degrees": 21}\n```')], id="out of its fence"),
        pytest.param([NOT_WITH_TOOLS, GOOD], id="refused with tools"),
        pytest.param([NO_FORMAT, BAD, GOOD], id="refused, and repaired"),
    ],
)
async def test_an_answer_is_valid_by_its_schema_at_both_apis(
    start_face: StartFace, script: list[Any]
) -> None:
    form = {"type": "json_schema", **NAMED}
    async with start_face(*script) as face:
        response = await face.ask(text={"format": form})
        left = face.agent.model.script
        face.agent.model.add(GOOD)
        answer = await face.agent.ask(response_format=FORMAT)

    assert left == []
    assert json.loads(said(response)) == {"degrees": 21} == json.loads(answer.text)


async def test_the_model_is_shown_the_problem(start_agent: StartAgent) -> None:
    async with start_agent(BAD, GOOD) as agent:
        await agent.ask(response_format=FORMAT)

    *_, before, last = agent.requests[1].body["messages"]
    assert before == {"role": "assistant", "content": '{"degrees": "21"}'}
    assert "`degrees` must be integer" in last["content"]
    assert agent.requests[1].body["response_format"] == FORMAT


async def test_the_schema_is_an_instruction_for_a_server_that_refuses_it(start_agent: StartAgent) -> None:
    async with start_agent(NO_FORMAT, GOOD, GOOD, NO_FORMAT, GOOD) as agent:
        await agent.ask(response_format=FORMAT)
        await agent.ask(response_format=FORMAT)
        await agent.ask(response_format=FORMAT, tool_choice="none")

    first, second, third, _, last = (request.body for request in agent.requests)
    assert "response_format" in first
    assert "response_format" not in second.keys() | third.keys() | last.keys()
    for body in (second, third, last):
        assert '"degrees"' in body["messages"][0]["content"]


async def test_a_text_dialect_gets_the_schema_as_an_instruction(start_agent: StartAgent) -> None:
    call = '<tool_call>\n{"name": "test_echo", "arguments": {"text": "x"}}\n</tool_call>'
    async with start_agent(says(call), BAD, GOOD, setup=Setup(dialect="hermes")) as agent:
        answer = await agent.ask(response_format=FORMAT)

    assert json.loads(answer.text) == {"degrees": 21}
    assert [event["type"] for event in answer.events] == ["call.started", "call.finished"]
    assert all("response_format" not in request.body for request in agent.requests)
    assert '"degrees"' in agent.requests[0].body["messages"][0]["content"]


@pytest.mark.parametrize(
    ("form", "bad", "problem"),
    [
        (FORMAT, BAD, "`degrees` must be integer"),
        (OBJECT, says("[1]"), "must be object"),
        (OBJECT, says("No."), ""),
    ],
)
async def test_an_answer_that_is_still_wrong_is_an_error(
    start_agent: StartAgent, form: object, bad: Reply, problem: str
) -> None:
    async with start_agent(bad, bad) as agent:
        response = await agent.post(response_format=form)

    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "invalid_output", "response_format")
    assert problem in error["message"]


async def test_a_server_that_held_to_it_once_is_streamed_until_it_does_not(start_agent: StartAgent) -> None:
    async with start_agent(GOOD, GOOD, BAD, BAD, GOOD) as agent:
        texts = [(await agent.post(response_format=FORMAT, stream=True)).text for _ in range(4)]

    shown = ['\\"21\\"' in text for text in texts]
    failed = ["invalid_output" in text for text in texts]
    assert (shown, failed) == ([False, False, True, False], [False, False, True, False])


async def test_a_schema_that_is_not_strict_is_never_streamed_unchecked(start_agent: StartAgent) -> None:
    loose = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA}}
    async with start_agent(GOOD, BAD, GOOD) as agent:
        texts = [(await agent.post(response_format=loose, stream=True)).text for _ in range(2)]

    assert "21" in texts[1]
    assert '\\"21\\"' not in texts[1]


async def test_a_response_with_a_wrong_answer_has_failed(start_face: StartFace) -> None:
    async with start_face(BAD, BAD) as face:
        events = await face.stream(text={"format": OBJECT | {"type": "json_schema"} | NAMED})

    assert events[-1]["type"] == "response.failed"
    assert events[-1]["response"]["output"] == []


async def test_a_refusal_is_an_answer_to_every_format(start_agent: StartAgent) -> None:
    refusal = streamed(chunk({"refusal": "I will not."}), chunk(finish="stop"))
    async with start_agent(refusal, refusal) as agent:
        for fields in ({"response_format": FORMAT}, {"tool_choice": "required"}):
            message = (await agent.post(**fields)).json()["choices"][0]["message"]
            assert (message["content"], message["refusal"]) == (None, "I will not.")


async def test_an_answer_that_was_cut_off_is_not_judged(start_agent: StartAgent) -> None:
    cut_off = streamed(chunk({"content": '{"deg'}), chunk(finish="length"))
    async with start_agent(cut_off) as agent:
        answer = await agent.ask(response_format=FORMAT)

    assert (answer.text, answer.finish_reason) == ('{"deg', "length")
