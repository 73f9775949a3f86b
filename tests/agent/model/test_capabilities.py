"""What is sent to whom: profiles by host and model, request bodies, lessons from refusals."""

import json

import pytest

from beckon_agent.core.model_types import Message, ModelRequest, Turn
from beckon_agent.core.run_types import Options
from beckon_agent.model.capabilities import Profile, needed_fields, profile_for
from beckon_agent.model.client import ModelClient, chat_body, without_streaming
from beckon_agent.model.errors import FieldNotSupported, ModelRefused
from tests.agent.scripted_model import (
    KEY,
    ReceivedRequest,
    Reply,
    answers,
    declaration,
    items_of,
    refuses,
    says,
    scripted_model,
)

GENERIC = Profile()
USER: Message = {"role": "user", "content": "hi"}
CALL = {"id": "aaaaaaaaa", "type": "function", "function": {"name": "f", "arguments": "{}"}}
RESULT: Message = {"role": "tool", "tool_call_id": "aaaaaaaaa", "content": "1"}


@pytest.mark.parametrize(
    ("base_url", "model", "expected"),
    [
        ("http://127.0.0.1:8000/v1", "m", {"name": "generic", "strict": False, "forced_choice": True}),
        ("https://api.openai.com/v1", "gpt-4.1", {"name": "openai", "limit_field": "max_completion_tokens"}),
        (
            "https://api.openai.com/v1",
            "gpt-4.1",
            {"strict": True, "refuses": frozenset(), "single_system": False},
        ),
        ("https://x.openai.azure.com/openai/v1", "gpt-4o", {"name": "openai", "limit_field": "max_tokens"}),
        ("https://x.openai.azure.com/openai/v1", "o3", {"limit_field": "max_completion_tokens"}),
        ("https://api.openai.com/v1", "o1-mini", {"system_role": "user", "single_system": True}),
        ("https://openrouter.ai/api/v1", "openai/o3", {"name": "openrouter", "limit_field": "max_tokens"}),
        ("https://notopenai.com/v1", "gpt-4.1", {"name": "generic"}),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "gemini-3", {"lowering": "gemini"}),
        ("http://litellm:4000", "vertex_ai/gemini-3-pro", {"lowering": "gemini", "replay_extra": True}),
        ("https://api.mistral.ai/v1", "mistral-small", {"assistant_after_tool": True, "nine_char_ids": True}),
        ("https://api.mistral.ai/v1", "mistral-small", {"refuses": frozenset({"stream_options"})}),
        ("https://api.deepseek.com", "deepseek-chat", {"reasoning_required": True}),
        ("https://api.moonshot.ai/v1", "kimi-k3", {"forced_choice": True, "strict": False}),
        ("https://api.z.ai/api/paas/v4", "glm-5", {"string_content": True}),
        ("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen3-max", {"name": "dashscope"}),
        (
            "http://127.0.0.1:11434/v1",
            "gpt-oss:120b",
            {"name": "ollama", "strict": False, "tool_budget": None},
        ),
        ("http://user:pw@127.0.0.1:11434/v1", "llama3.2:3b", {"name": "ollama", "tool_budget": 8}),
    ],
)
def test_a_profile_follows_from_the_host_and_the_model(
    base_url: str, model: str, expected: dict[str, object]
) -> None:
    profile = profile_for(base_url, model)
    assert {name: getattr(profile, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("model", "budget"),
    [
        ("Qwen/Qwen3-0.6B", 8),
        ("gemma-3-270m", 8),
        ("llama-3.1-8b-instruct", 16),
        ("qwen3:30b-a3b", None),
        ("gpt-4.1", None),
        ("model-4bit", None),
    ],
)
def test_small_models_have_a_budget_of_tools(model: str, budget: int | None) -> None:
    profile = profile_for("http://127.0.0.1:8000/v1", model)
    assert profile.tool_budget == budget
    assert profile.tool_limit == (budget or 128)


def test_a_request_is_streamed_and_asks_for_usage() -> None:
    body = chat_body("m", ModelRequest([USER]), GENERIC)
    assert body == {
        "model": "m",
        "messages": [USER],
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_limits_and_stops_are_sent_under_the_names_that_the_server_knows() -> None:
    request = ModelRequest([USER], temperature=0.5, max_tokens=100, stop=("END",))
    plain = chat_body("m", request, GENERIC)
    assert (plain["temperature"], plain["max_tokens"], plain["stop"]) == (0.5, 100, ["END"])
    reasoning = chat_body("o3", request, profile_for("https://api.openai.com/v1", "o3"))
    assert reasoning["max_completion_tokens"] == 100
    assert not reasoning.keys() & {"max_tokens", "temperature", "stop"}


def test_more_tools_than_the_provider_takes_are_refused_before_sending() -> None:
    tools = [declaration(f"f{number}") for number in range(129)]
    assert len(chat_body("m", ModelRequest([USER], tools[:128]), GENERIC)["tools"]) == 128
    with pytest.raises(ModelRefused, match="129 tools are more than the 128 that generic takes"):
        chat_body("m", ModelRequest([USER], tools), GENERIC)


def test_strict_is_only_sent_where_it_is_known() -> None:
    tool = declaration("f")
    tool["function"]["strict"] = True
    assert "strict" not in chat_body("m", ModelRequest([USER], [tool]), GENERIC)["tools"][0]["function"]
    openai = profile_for("https://api.openai.com/v1", "gpt-4.1")
    assert chat_body("m", ModelRequest([USER], [tool]), openai)["tools"] == [tool]
    assert tool["function"]["strict"] is True


@pytest.mark.parametrize(
    ("choice", "offered", "words"),
    [
        ("required", ["f", "g"], "Call one of the tools now."),
        ({"type": "function", "function": {"name": "f"}}, ["f"], "Call the tool f now."),
    ],
)
def test_a_forced_choice_is_sent_or_said_in_an_instruction(
    choice: object, offered: list[str], words: str
) -> None:
    tools = [declaration("f"), declaration("g")]
    request = ModelRequest([SYSTEM, USER], tools, extra={"tool_choice": choice, "parallel_tool_calls": False})
    sent = chat_body("m", request, GENERIC)
    assert (sent["tool_choice"], sent["messages"]) == (choice, [SYSTEM, USER])
    assert sent["parallel_tool_calls"] is False

    said = chat_body("m", request, Profile(forced_choice=False))
    assert "tool_choice" not in said
    assert [tool["function"]["name"] for tool in said["tools"]] == offered
    assert said["messages"][0]["content"].startswith(f"be brief\n\n{words}")
    assert said["messages"][1:] == [USER]


def test_to_choose_no_tool_the_model_is_shown_none() -> None:
    request = ModelRequest(
        [USER], [declaration("f")], extra={"tool_choice": "none", "parallel_tool_calls": True}
    )
    assert not chat_body("m", request, GENERIC).keys() & {"tools", "tool_choice", "parallel_tool_calls"}


def test_what_is_ours_to_say_cannot_be_overridden_and_the_rest_goes_through() -> None:
    extra = {"n": 3, "stream": False, "model": "x", "messages": [], "tools": [1], "seed": 7, "user": None}
    body = chat_body("m", ModelRequest([USER], extra=extra), GENERIC)
    assert (body["model"], body["messages"], body["stream"], body["seed"]) == ("m", [USER], True, 7)
    assert not body.keys() & {"n", "tools", "user"}


def test_dashscope_needs_a_word_about_thinking_without_streaming() -> None:
    profile = profile_for("https://dashscope.aliyuncs.com/compatible-mode/v1", "qwen3-max")
    body = without_streaming(chat_body("m", ModelRequest([USER]), profile), profile)
    assert (body["stream"], body["enable_thinking"]) == (False, False)
    assert "stream_options" not in body


async def test_reasoning_and_signatures_reach_the_server_as_they_were() -> None:
    signed = {**CALL, "extra_content": {"google": {"thought_signature": "c2ln"}}}
    said: Message = {"role": "assistant", "content": None, "tool_calls": [signed], "reasoning_content": "hm"}
    profile = Profile(reasoning_replay="reasoning_content")
    async with scripted_model(says("ok")) as model, ModelClient(model.base_url, KEY, "m", profile) as client:
        await items_of(client, ModelRequest([USER, said, RESULT]))
    assert model.requests[0].body["messages"] == [USER, said, RESULT]
    assert model.requests[0].path == "/v1/chat/completions"


TOOL_TURN: list[Message] = [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}, RESULT]
SYSTEM: Message = {"role": "system", "content": "be brief"}
REFUSALS = [
    ("deepseek-reasoner does not support this tool_choice", lambda body: "tool_choice" in body),
    (
        "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        lambda body: "max_tokens" in body,
    ),
    ("Unrecognized request argument supplied: stream_options", lambda body: "stream_options" in body),
    ("stream_options: Extra inputs are not permitted", lambda body: "stream_options" in body),
    ("'temperature' does not support 0.5 with this model", lambda body: "temperature" in body),
    ("Tool choice must be auto", lambda body: body.get("tool_choice") == "required"),
    ("Unknown parameter: 'parallel_tool_calls'", lambda body: "parallel_tool_calls" in body),
    (
        "Unexpected role 'user' after role 'tool'",
        lambda body: [message["role"] for message in body["messages"]][-2:] == ["tool", "user"],
    ),
    (
        "The reasoning_content in the thinking mode must be passed back to the API.",
        lambda body: any("tool_calls" in one and "reasoning_content" not in one for one in body["messages"]),
    ),
    (
        "messages[0].role does not support 'system' with this model",
        lambda body: body["messages"][0]["role"] == "system",
    ),
    (
        "message[3].content[2] has invalid field(s): text",
        lambda body: any(isinstance(one["content"], list) for one in body["messages"]),
    ),
    ("Unknown field: strict", lambda body: "strict" in json.dumps(body["tools"])),
]


@pytest.mark.parametrize(("message", "refused"), REFUSALS)
async def test_a_refusal_that_says_what_is_wrong_is_learnt_from(message: str, refused: object) -> None:
    def strict_server(sent_request: ReceivedRequest) -> Reply:
        assert callable(refused)
        return refuses(400, message) if refused(sent_request.body) else says("ok")

    tool = declaration("f")
    tool["function"]["strict"] = True
    picture = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    request = ModelRequest(
        [SYSTEM, *TOOL_TURN, {"role": "user", "content": picture}],
        [tool],
        temperature=0.5,
        max_tokens=100,
        extra={"tool_choice": "required", "parallel_tool_calls": False},
    )
    profile = Profile(strict=True)
    async with scripted_model(*[strict_server] * 4) as model:
        async with ModelClient(model.base_url, KEY, "m", profile) as client:
            for _ in range(2):
                turn = (await items_of(client, request))[-1]
                assert isinstance(turn, Turn)
                assert turn.text == "ok"
        # The second time the client knows.
        assert len(model.requests) == 3
        assert client.profile != profile


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("Unsupported parameter: 'seed'", "seed"),
        ("body.logit_bias: Extra inputs are not permitted", "logit_bias"),
        ("'verbosity' does not support 'low' with this model", "verbosity"),
        ("Unknown parameter: 'stop'", "stop"),
    ],
)
async def test_the_refusal_of_a_needed_field_is_an_error_that_names_it(message: str, field: str) -> None:
    extra = {"seed": 7, "logit_bias": {"1": 2}, "verbosity": "low"}
    options = Options(extra=extra, stop=("END",))
    request = ModelRequest([USER], extra=extra, stop=options.stop, needed=needed_fields(options))
    async with (
        scripted_model(refuses(400, message)) as model,
        ModelClient(model.base_url, KEY, "m") as client,
    ):
        with pytest.raises(FieldNotSupported, match=f"does not take '{field}'.*leave it out") as caught:
            await items_of(client, request)
    assert caught.value.param == field


def test_a_field_that_the_table_refuses_is_no_part_of_a_request_that_needs_it() -> None:
    request = ModelRequest([USER], stop=("END",), needed=frozenset({"stop"}))
    with pytest.raises(FieldNotSupported, match="'stop'"):
        chat_body("o3", request, profile_for("https://api.openai.com/v1", "o3"))


async def test_an_optional_field_is_left_out_for_a_server_that_refuses_it() -> None:
    extra = {"user": "u", "service_tier": "flex"}
    refusal = {"detail": [{"loc": ["body", "user"], "msg": "Extra inputs are not permitted", "type": "x"}]}
    async with (
        scripted_model(answers(refusal, 422), says("ok")) as model,
        ModelClient(model.base_url, KEY, "m") as client,
    ):
        await items_of(client, ModelRequest([USER], extra=extra))
    assert "user" not in model.requests[1].body
    assert model.requests[1].body["service_tier"] == "flex"


async def test_a_server_that_refuses_everything_is_not_requested_ever() -> None:
    def contrary(sent_request: ReceivedRequest) -> Reply:
        name = "max_tokens" if "max_tokens" in sent_request.body else "max_completion_tokens"
        other = "max_completion_tokens" if name == "max_tokens" else "max_tokens"
        return refuses(400, f"Unsupported parameter: '{name}'. Use '{other}' instead.")

    async with scripted_model(*[contrary] * 20) as model, ModelClient(model.base_url, KEY, "m") as client:
        with pytest.raises(ModelRefused, match="Unsupported parameter"):
            await items_of(client, ModelRequest([USER], max_tokens=100))
    assert len(model.requests) <= 5
