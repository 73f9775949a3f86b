"""Answers constrained by a schema: when the agent learns that the server can, and when it stops."""

from dataclasses import replace

import pytest

from beckon_agent.core.model_types import Turn
from beckon_agent.core.run_events import TextDelta
from beckon_agent.model.errors import ModelRefused
from tests.agent.run.test_model_turn import ECHO, PROMPTED_CALL, items_of, speaking, turn_of, with_tools
from tests.agent.running_agent import QUICK
from tests.agent.scripted_model import Reply, ScriptedModel, answers, chunk, refuses, says, streamed

NO_TEMPLATE = answers({"chat_template_caps": {"supports_tools": False}})
TEMPLATE = answers({"chat_template_caps": {"supports_tools": True}})
CALL = '{"tool": "echo", "arguments": {"text": "a"}}'


def of_llama_cpp(reply: Reply) -> Reply:
    return replace(reply, headers={"server": "llama.cpp"})


def sends_format(server: ScriptedModel) -> list[bool]:
    return ["response_format" in request.body for request in server.requests]


CRASHES = refuses(500, "Error in iterating prediction stream: ValueError: 'type' must be a string")
PROSE = of_llama_cpp(says("I have no tools."))
CONSTRAINED_CALL = of_llama_cpp(says(CALL[:9], CALL[9:]))


async def test_tools_that_the_template_drops_without_an_error_go_into_the_prompt_and_a_schema() -> None:
    async with speaking(PROSE, NO_TEMPLATE, CONSTRAINED_CALL, CONSTRAINED_CALL) as (model, server):
        first, second = await turn_of(model), await turn_of(model)

    assert [turn.text for turn in (first, second)] == ["", ""]
    assert [(call.name, call.arguments) for call in first.calls] == [("echo", '{"text": "a"}')]
    assert first.calls[0].origin == "dialect"
    assert [request.path for request in server.requests] == [
        "/v1/chat/completions",
        "/props",
        "/v1/chat/completions",
        "/v1/chat/completions",
    ]
    assert with_tools(server) == [True, False, False, False]
    sent = server.requests[2].body
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
    assert len(server.requests) == 3
    assert model.name == "m (native)"


async def test_tools_that_the_template_drops_under_a_named_native_dialect_are_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with speaking(PROSE, NO_TEMPLATE, PROSE, dialect="native") as (model, server):
        turns = [await turn_of(model), await turn_of(model)]

    assert [turn.text for turn in turns] == ["I have no tools."] * 2
    assert with_tools(server) == [True, False, True]
    assert model.name == "m (native; its chat template drops tools)"
    (warning,) = [one.getMessage() for one in caplog.records if "has no place for tools" in one.getMessage()]
    assert "set the dialect prompted (BECKON_DIALECT" in warning


async def test_any_server_gets_the_schema_of_the_prompted_dialect_with_the_first_request() -> None:
    async with speaking(says(*CALL), says('{"answer": "D', 'one."}'), dialect="prompted") as (model, server):
        first, second = await turn_of(model), await turn_of(model)

    assert [call.name for call in first.calls] == ["echo"]
    assert second.text == "Done."
    assert sends_format(server) == [True, True]


@pytest.mark.parametrize(
    "ignored",
    [says("The time", " is now."), says('{"time": 5}'), says('{"answer": 5}'), says("")],
    ids=["prose", "another object", "another type", "nothing"],
)
async def test_an_answer_of_a_server_that_ignores_the_schema_is_replaced_before_it_is_shown(
    ignored: Reply,
) -> None:
    script = (ignored, says("It is ", "noon."), says(PROMPTED_CALL))
    async with speaking(*script, dialect="prompted") as (model, server):
        first, second = await items_of(model), await turn_of(model)

    assert "".join(item.text for item in first if isinstance(item, TextDelta)) == "It is noon."
    assert [call.name for call in second.calls] == ["echo"]
    assert sends_format(server) == [True, False, False]
    assert "functionCall" in server.requests[1].body["messages"][0]["content"]


async def test_a_call_in_another_form_is_made_and_the_schema_is_not_sent_again() -> None:
    async with speaking(says(PROMPTED_CALL), says("Done."), dialect="prompted") as (model, server):
        first, second = await turn_of(model), await turn_of(model)

    assert [call.name for call in first.calls] == ["echo"]
    assert second.text == "Done."
    assert sends_format(server) == [True, False]


async def test_an_answer_that_was_cut_off_shows_nothing_about_the_server() -> None:
    cut = streamed(chunk({"content": '{"tool": "echo", "argum'}), chunk(finish="length"))
    async with speaking(cut, says(CALL), dialect="prompted") as (model, server):
        first, second = await turn_of(model), await turn_of(model)

    assert first.text == '{"tool": "echo", "argum'
    assert [call.name for call in second.calls] == ["echo"]
    assert sends_format(server) == [True, True]


async def test_shown_reasoning_is_not_repeated() -> None:
    deltas = ({"reasoning_content": "Hm."}, {"content": "It is noon."})
    thinks = streamed(*map(chunk, deltas), chunk(finish="stop"))
    async with speaking(thinks, says("Later."), dialect="prompted") as (model, server):
        first, second = await turn_of(model), await turn_of(model)

    assert [turn.text for turn in (first, second)] == ["It is noon.", "Later."]
    assert sends_format(server) == [True, False]


@pytest.mark.parametrize(
    "refusal",
    [
        "'response_format' is not supported",  # a server without the field
        "This response_format type is unavailable now",  # DeepSeek
        "Grammar error: Unknown format: uri",  # vLLM
        "Failed to initialize samplers: failed to parse grammar",  # llama.cpp
    ],
)
async def test_a_server_that_refuses_the_schema_is_prompted_without_it_from_then_on(refusal: str) -> None:
    script = (refuses(400, refusal), says(PROMPTED_CALL), says(PROMPTED_CALL))
    async with speaking(*script, dialect="prompted") as (model, server):
        turns = [await turn_of(model), await turn_of(model)]

    assert [len(turn.calls) for turn in turns] == [1, 1]
    assert sends_format(server) == [True, False, False]
    assert "functionCall" in server.requests[1].body["messages"][0]["content"]


@pytest.mark.parametrize(
    "failure",
    [refuses(422, "bad request"), refuses(500, "invalid JSON schema in format"), CRASHES],
    ids=["no reason", "Ollama", "LM Studio"],
)
async def test_an_unknown_server_that_fails_at_the_schema_without_naming_it_is_prompted_without_it(
    failure: Reply,
) -> None:
    failures = [failure] * (QUICK.attempts if failure is CRASHES else 1)
    async with speaking(*failures, says("Hello."), says("Again."), dialect="prompted") as (model, server):
        turns = [await turn_of(model), await turn_of(model)]

    assert [turn.text for turn in turns] == ["Hello.", "Again."]
    assert sends_format(server) == [*([True] * len(failures)), False, False]


async def test_a_server_that_refuses_the_request_without_the_schema_as_well_gets_it_again() -> None:
    refused = refuses(400, "the prompt is bad")
    async with speaking(refused, refused, says(CALL), dialect="prompted") as (model, server):
        with pytest.raises(ModelRefused, match="the prompt is bad"):
            await turn_of(model)
        turn = await turn_of(model)

    assert len(turn.calls) == 1
    assert sends_format(server) == [True, False, True]


@pytest.mark.parametrize("known", [True, False], ids=["server known to constrain", "named cause"])
async def test_another_refusal_is_not_taken_for_one_of_the_schema(known: bool) -> None:
    refused = refuses(400, "the prompt is bad" if known else "the prompt is too long")
    script = [says(CALL)] * known
    async with speaking(*script, refused, dialect="prompted") as (model, server):
        for _ in script:
            await turn_of(model)
        with pytest.raises(ModelRefused, match="the prompt is"):
            await turn_of(model)

    assert sends_format(server) == [True] * (len(script) + 1)


async def test_a_forced_call_is_constrained_in_every_text_dialect() -> None:
    script = (says(CALL), says("Done."))
    async with speaking(*script, dialect="hermes") as (model, server):
        items = await items_of(model, (ECHO,), extra={"tool_choice": "required"})
        await items_of(model)

    assert isinstance(items[-1], Turn)
    assert [call.name for call in items[-1].calls] == ["echo"]
    assert sends_format(server) == [True, False]


async def test_the_client_s_own_format_and_an_answer_without_tools_are_not_constrained() -> None:
    own = {"type": "json_object"}
    async with speaking(says("Hi."), says("{}"), dialect="prompted") as (model, server):
        await items_of(model, (), extra={})
        await items_of(model, (ECHO,), extra={"response_format": own})

    assert ["json_schema" in str(request.body) for request in server.requests] == [False] * 2


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "echo"}}], ids=str)
async def test_a_forced_choice_is_a_schema_of_calls_alone(choice: object) -> None:
    async with speaking(PROSE, NO_TEMPLATE, CONSTRAINED_CALL) as (model, server):
        await items_of(model, (ECHO,), extra={"tool_choice": choice})

    body = server.requests[-1].body
    (branch,) = body["response_format"]["json_schema"]["schema"]["anyOf"]
    assert branch["properties"]["tool"] == {"const": "echo"}
    assert "tool_choice" not in body


async def test_a_call_that_the_conversation_brought_along_is_not_made() -> None:
    pasted = [{"role": "user", "content": f"Do this: {CALL}"}]
    async with speaking(PROSE, NO_TEMPLATE, CONSTRAINED_CALL) as (model, _):
        turn = (await items_of(model, messages=pasted))[-1]

    assert getattr(turn, "calls", None) == ()
    assert [refused.reason for refused in getattr(turn, "refused", ())] == ["brought_along"]
