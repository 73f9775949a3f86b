"""Conversations as text dialects render them, and the registry of dialects.

Covered: one system message in front, roles that alternate, the tools in the prompt, results
by name, the roles of ChatGLM3's observations, content parts, guesses by model name.
"""

import itertools
import json
from typing import Any

import pytest

from beckon_agent.core.model_types import Message
from beckon_agent.dialects.registry import DIALECTS, dialect_named, guess_dialect
from tests.agent.dialects.reading import declare

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of a place.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Compare Paris and Rome."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "a",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'},
            },
            {"id": "b", "type": "function", "function": {"name": "get_weather", "arguments": "not JSON"}},
        ],
    },
    {"role": "tool", "tool_call_id": "a", "content": '{"degrees": 20}'},
    {"role": "tool", "tool_call_id": "b", "content": "no such city"},
    {"role": "developer", "content": "Be brief."},
]
TEXT_DIALECTS = [name for name, one in DIALECTS.items() if not one.native]


def test_the_native_dialect_changes_nothing() -> None:
    rendered = DIALECTS["native"].render(HISTORY, TOOLS)

    assert list(rendered.messages) == HISTORY
    assert list(rendered.tools) == TOOLS
    assert rendered.stop == ()


@pytest.mark.parametrize("name", TEXT_DIALECTS)
def test_a_text_dialect_needs_no_tools_of_the_server(name: str) -> None:
    before = json.dumps(HISTORY)
    rendered = DIALECTS[name].render(HISTORY, TOOLS)
    system, question, calls, results = rendered.messages

    assert rendered.tools == ()
    assert system["role"] == "system"
    assert system["content"].startswith("Be kind.\n\nBe brief.\n\n")
    assert all(word in system["content"] for word in ("get_weather", "The weather of a place.", '"city"'))
    assert question == {"role": "user", "content": "Compare Paris and Rome."}
    assert calls["role"] == "assistant"
    assert "get_weather" in calls["content"]
    assert "Paris" in calls["content"]
    assert "degrees" in results["content"]
    assert "no such city" in results["content"]
    assert json.dumps(HISTORY) == before


@pytest.mark.parametrize("name", TEXT_DIALECTS)
def test_no_two_messages_of_one_role_stand_in_a_row_and_no_server_refuses_the_roles(name: str) -> None:
    history = [*HISTORY, {"role": "user", "content": "And?"}, {"role": "user", "content": "Go on."}]
    roles = [message["role"] for message in DIALECTS[name].render(history, TOOLS).messages]

    assert all(first != second for first, second in itertools.pairwise(roles))
    assert set(roles) <= {"system", "user", "assistant"} | (
        {"observation"} if "observation" in name else set()
    )


@pytest.mark.parametrize("name", TEXT_DIALECTS)
def test_without_tools_a_prompt_says_nothing_of_them(name: str) -> None:
    rendered = DIALECTS[name].render([{"role": "user", "content": "Hi"}], [])

    assert rendered.messages == ({"role": "user", "content": "Hi"},)
    assert rendered.stop == ()


def test_results_of_chatglm3_are_a_users_text_or_the_observation_role_by_choice() -> None:
    as_user = DIALECTS["chatglm3"].render(HISTORY, TOOLS).messages[-1]
    as_observation = DIALECTS["chatglm3_observation"].render(HISTORY, TOOLS).messages[-1]

    assert as_user["role"] == "user"
    assert as_user["content"].startswith('<|observation|>\n{"degrees": 20}')
    assert as_observation["role"] == "observation"
    assert as_observation["content"].startswith('{"degrees": 20}')


def test_a_picture_among_the_users_words_stays() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "Look:"},
        {"role": "user", "content": [picture]},
    ]

    (message,) = DIALECTS["hermes"].render(history, []).messages
    assert message["content"] == [{"type": "text", "text": "Look:"}, picture]


def test_the_results_of_prompted_tools_are_json_by_name() -> None:
    results = DIALECTS["prompted"].render(HISTORY, TOOLS).messages[-1]["content"].split("\n\n")

    assert [json.loads(result) for result in results] == [
        {"functionResponse": {"name": "get_weather", "response": {"degrees": 20}}},
        {"functionResponse": {"name": "get_weather", "response": "no such city"}},
    ]


def test_an_unknown_dialect_is_refused_with_the_names_that_exist() -> None:
    with pytest.raises(ValueError, match=r"'klingon'.*native, prompted, chatglm3"):
        dialect_named("klingon")
    assert all(dialect_named(name).name == name for name in DIALECTS)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("THUDM/chatglm3-6b", "chatglm3"),
        ("zai-org/GLM-4.6", "glm4"),
        ("deepseek-ai/DeepSeek-V3.2", "deepseek"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen3_coder"),
        ("qwen2.5:7b", "hermes"),
        ("NousResearch/Hermes-3-Llama-3.1-8B", "hermes"),
        ("meta-llama/Llama-4-Scout-17B", "pythonic"),
        ("llama3.2", "llama3"),
        ("mixtral:8x7b", "mistral"),
        ("Ministral-8B", "mistral"),
        ("demo-no-tools", "prompted"),
        ("", "prompted"),
    ],
)
def test_a_models_name_suggests_its_dialect(model: str, name: str) -> None:
    assert guess_dialect(model).name == name


MARKUP = (
    "<|assistant|>", "<|user|>", "<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[/TOOL_RESULTS]",
    "<｜DSML｜invoke",
    "<｜tool▁calls▁begin｜>", "<function=f>", "<|python_tag|>", '"functionCall":', "<tool_response>",
)  # fmt: skip


@pytest.mark.parametrize("markup", MARKUP)
@pytest.mark.parametrize("name", [name for name in DIALECTS if name != "native"])
def test_markup_of_users_tools_and_descriptions_is_no_markup_in_the_prompt(name: str, markup: str) -> None:
    said = f"See {markup} here."
    tool = declare("f")[0]
    empty = [message["content"] for message in DIALECTS[name].render([], [tool]).messages]
    tool["function"] |= {"description": said, "parameters": {"type": "object", "description": said}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    conversation: list[Message] = [
        {"role": "system", "content": said},
        {"role": "user", "content": said},
        {"role": "user", "content": [{"type": "text", "text": said}]},
    ]
    results: list[Message] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "no"},
    ]
    plain = DIALECTS[name].render(results, [])
    results[1]["content"] = json.dumps({"page": said.replace("<", "\u003c")})
    shown = DIALECTS[name].render(results, [])

    rendered = DIALECTS[name].render(conversation, [tool])
    assert str([message["content"] for message in rendered.messages]).count(markup) == str(empty).count(
        markup
    )
    assert str(shown.messages).count(markup) == str(plain.messages).count(markup)


def test_ordinary_text_is_not_escaped() -> None:
    text = 'a < b, [1], <b>bold</b>, x <| f |> y, {"name": 1}, <function>, [TOOLS], `tool_call`, A|B, <tool>'

    assert DIALECTS["hermes"].render([{"role": "user", "content": text}], []).messages[0]["content"] == text
