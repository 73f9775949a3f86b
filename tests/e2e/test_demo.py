"""From the shipped manifests to an answer over HTTP, in each dialect, streaming and not."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from tests.e2e.conftest import EXAMPLES, Start
from tests.e2e.local_platform import LocalPlatform

DIALECTS = ("native", "prompted", "chatglm3")


@pytest.fixture(scope="module")
def two_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the tools that these tests call, so that few processes start for a dialect."""
    folder = tmp_path_factory.mktemp("two-tools")
    for name in ("calculator", "current-time"):
        shutil.copytree(EXAMPLES / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def platforms(platform: LocalPlatform) -> dict[str, LocalPlatform]:
    """One platform for each dialect, started when it is first needed."""
    return {"native": platform}


@pytest.fixture
def client_of(
    request: pytest.FixtureRequest,
    platforms: dict[str, LocalPlatform],
    start_platform: Start,
    two_tools: Path,
) -> OpenAI:
    """Return an OpenAI client in which only the base URL was changed."""
    dialect: str = request.param
    if dialect not in platforms:
        platforms[dialect] = start_platform(two_tools, BECKON_DIALECT=dialect)
    return OpenAI(base_url=f"{platforms[dialect].url}/v1", api_key="none", max_retries=0)


@pytest.mark.parametrize("client_of", DIALECTS, indirect=True)
def test_a_question_is_answered_through_a_tool(client_of: OpenAI) -> None:
    answer = client_of.chat.completions.create(
        model="beckon", messages=[{"role": "user", "content": "What is 17% of 2340?"}]
    )

    assert answer.choices[0].finish_reason == "stop"
    assert "397.8" in (answer.choices[0].message.content or "")
    client_of.close()


@pytest.mark.parametrize("client_of", DIALECTS, indirect=True)
def test_a_streamed_answer_shows_no_markup(client_of: OpenAI) -> None:
    stream = client_of.chat.completions.create(
        model="beckon",
        messages=[{"role": "user", "content": "What is 17% of 2340?"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)

    assert "397.8" in text
    assert not any(mark in text for mark in ("functionCall", "tool_call", "<|", "```"))
    assert sum(chunk.choices[0].finish_reason == "stop" for chunk in chunks if chunk.choices) == 1
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    client_of.close()


@pytest.mark.parametrize("client_of", DIALECTS, indirect=True)
def test_two_questions_in_one_are_two_calls(client_of: OpenAI) -> None:
    answer = client_of.chat.completions.create(
        model="beckon",
        messages=[{"role": "user", "content": "What is 2+2 and what time is it in Europe/Paris?"}],
        extra_body={"beckon": {"events": True}},
    )
    extension = (answer.model_extra or {})["beckon"]
    kinds = [(event["type"], event["name"]) for event in extension["events"]]

    assert kinds.count(("call.finished", "calculator")) == 1
    assert kinds.count(("call.finished", "current_time")) == 1
    assert [kind for kind, _ in kinds[:2]] == ["call.started", "call.started"]
    client_of.close()


GET_WEATHER = {
    "name": "get_weather",
    "description": "Get the current weather for a location",
    "parameters": {
        "type": "object",
        "properties": {"location": {"type": "string", "description": "City and country, e.g. Bogotá"}},
        "required": ["location"],
    },
}


@pytest.mark.parametrize("client_of", ["native"], indirect=True)
def test_a_client_calls_its_own_function_by_chat_completions(client_of: OpenAI) -> None:
    messages: list[Any] = [{"role": "user", "content": "What is the weather like in Paris today?"}]
    tools: list[Any] = [{"type": "function", "function": GET_WEATHER}]
    sent = client_of.chat.completions.create(model="beckon", messages=messages, tools=tools)
    (call,) = sent.choices[0].message.tool_calls or []
    assert call.type == "function"
    assert json.loads(call.function.arguments) == {"location": "Paris"}
    messages.append(sent.choices[0].message)
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "14 degrees"})
    answer = client_of.chat.completions.create(model="beckon", messages=messages, tools=tools)

    assert answer.choices[0].message.content == "[demo model] get_weather: 14 degrees"
    client_of.close()


@pytest.mark.parametrize("client_of", ["native"], indirect=True)
@pytest.mark.parametrize("choice", ["auto", {"type": "function", "name": "get_weather"}])
def test_a_client_calls_its_own_function_by_responses(client_of: OpenAI, choice: Any) -> None:
    tools: list[Any] = [{"type": "function", **GET_WEATHER}]
    sent = client_of.responses.create(
        model="beckon", input="What is the weather like in Paris today?", tools=tools, tool_choice=choice
    )
    (call,) = sent.output
    assert call.type == "function_call"
    output: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "14 degrees"}
    answer = client_of.responses.create(
        model="beckon", input=[output], tools=tools, previous_response_id=sent.id
    )

    assert answer.output_text == "[demo model] get_weather: 14 degrees"
    client_of.close()
