"""Answers constrained by a schema: when the agent learns that the server can, and when it stops."""

from dataclasses import replace

import pytest

from tests.agent.run.test_model_turn import ECHO, items_of, speaking, turn_of, with_tools
from tests.agent.scripted_model import Reply, answers, refuses, says

NO_TEMPLATE = answers({"chat_template_caps": {"supports_tools": False}})
TEMPLATE = answers({"chat_template_caps": {"supports_tools": True}})
CALL = '{"tool": "echo", "arguments": {"text": "a"}}'


def of_llama_cpp(reply: Reply) -> Reply:
    return replace(reply, headers={"server": "llama.cpp"})


PROSE = of_llama_cpp(says("I have no tools."))
CONSTRAINED_CALL = of_llama_cpp(says(CALL[:9], CALL[9:]))


async def test_tools_that_the_template_drops_without_an_error_go_into_the_prompt_and_a_schema() -> None:
    async with speaking(PROSE, NO_TEMPLATE, CONSTRAINED_CALL, CONSTRAINED_CALL) as (model, server):
        first, second = await turn_of(model), await turn_of(model)

    assert [turn.text for turn in (first, second)] == ["", ""]
    assert [(call.name, call.arguments) for call in first.calls] == [("echo", '{"text": "a"}')]
    assert first.calls[0].origin == "dialect"
    assert [asked.path for asked in server.asked] == [
        "/v1/chat/completions",
        "/props",
        "/v1/chat/completions",
        "/v1/chat/completions",
    ]
    assert with_tools(server) == [True, False, False, False]
    sent = server.asked[2].body
    assert sent["response_format"]["json_schema"]["schema"]["anyOf"][0]["properties"]["tool"] == {
        "const": "echo"
    }
    assert '{"tool": "echo", "arguments": {"text": "…"}}' in sent["messages"][0]["content"]
    assert model.name == "m (prompted)"


@pytest.mark.parametrize(
    "properties", [TEMPLATE, answers({"chat_template": "x"}), refuses(404, "no props")], ids=str
)
async def test_native_calls_stay_where_the_template_has_tools_or_nothing_is_known(properties: Reply) -> None:
    async with speaking(PROSE, properties, PROSE) as (model, server):
        first, second = await turn_of(model), await turn_of(model)

    assert (first.text, second.text) == ("I have no tools.", "I have no tools.")
    assert len(server.asked) == 3
    assert model.name == "m (native)"


async def test_a_named_prompted_dialect_is_constrained_as_soon_as_the_server_is_known() -> None:
    async with speaking(PROSE, TEMPLATE, CONSTRAINED_CALL, dialect="prompted") as (model, server):
        turn = await turn_of(model)

    assert len(turn.calls) == 1
    assert ["response_format" in asked.body for asked in server.asked] == [False, False, True]


@pytest.mark.parametrize(
    "refusal",
    ["'response_format' is not supported", "Failed to initialize samplers: failed to parse grammar"],
)
async def test_a_server_that_refuses_the_schema_is_prompted_without_it_from_then_on(refusal: str) -> None:
    refused = of_llama_cpp(refuses(400, refusal))
    call = '{"functionCall": {"name": "echo", "args": {"text": "a"}}}'
    script = (PROSE, TEMPLATE, refused, says(call), says(call))
    async with speaking(*script, dialect="prompted") as (model, server):
        turns = [await turn_of(model), await turn_of(model)]

    assert [len(turn.calls) for turn in turns] == [1, 1]
    assert ["response_format" in asked.body for asked in server.asked] == [False, False, True, False, False]


async def test_another_refusal_is_not_taken_for_one_of_the_schema() -> None:
    refused = of_llama_cpp(refuses(400, "the prompt is bad"))
    async with speaking(PROSE, TEMPLATE, refused, dialect="prompted") as (model, _):
        with pytest.raises(Exception, match="the prompt is bad"):
            await turn_of(model)


async def test_the_client_s_own_format_and_an_answer_without_tools_are_not_constrained() -> None:
    own = {"type": "json_object"}
    script = (PROSE, TEMPLATE, says("{}"), PROSE)
    async with speaking(*script, dialect="prompted") as (model, server):
        await items_of(model, (), extra={})
        await items_of(model, (ECHO,), extra={"response_format": own})
        await items_of(model, ())

    assert ["json_schema" in str(asked.body) for asked in server.asked] == [False] * 4


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "echo"}}], ids=str)
async def test_a_forced_choice_is_a_schema_of_calls_alone(choice: object) -> None:
    async with speaking(PROSE, NO_TEMPLATE, CONSTRAINED_CALL) as (model, server):
        await items_of(model, (ECHO,), extra={"tool_choice": choice})

    body = server.asked[-1].body
    (branch,) = body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert branch["properties"]["tool"] == {"const": "echo"}
    assert "tool_choice" not in body


async def test_a_call_that_the_conversation_brought_along_is_not_made() -> None:
    pasted = [{"role": "user", "content": f"Do this: {CALL}"}]
    async with speaking(PROSE, NO_TEMPLATE, CONSTRAINED_CALL) as (model, _):
        turn = (await items_of(model, messages=pasted))[-1]

    assert getattr(turn, "calls", None) == ()
    assert [refused.reason for refused in getattr(turn, "refused", ())] == ["brought_along"]
