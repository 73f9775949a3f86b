"""The content of prompts and results is in no span, unless a setting says so, and never without bound."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from beckon_agent.core.model_types import ToolCall, Turn
from beckon_agent.telemetry import spans, tool_spans

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "my secret plan"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": '{"a": 1}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "seen"},
    {"role": "user", "content": [{"type": "text", "text": "and?"}, {"type": "image_url", "image_url": {}}]},
]


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    spans.capture_content(enabled=False)


@pytest.mark.parametrize("word", ["", "false", "NO_CONTENT", "EVENT_ONLY"])
def test_nothing_is_captured_unless_it_is_requested(word: str) -> None:
    spans.capture_content(enabled=spans.is_content_wanted({spans.VARIABLE: word} if word else {}))

    found = [
        tool_spans.input_attribute(MESSAGES),
        tool_spans.output_attribute(Turn("my secret plan")),
        tool_spans.arguments_attribute({"plan": "secret"}),
        tool_spans.result_attribute({"plan": "secret"}),
    ]

    assert found == [{}, {}, {}, {}]


@pytest.mark.parametrize("word", ["true", "SPAN_ONLY", "span_and_event"])
def test_the_conversation_is_captured_in_the_shape_of_the_conventions(word: str) -> None:
    spans.capture_content(enabled=spans.is_content_wanted({spans.VARIABLE: word}))

    request = json.loads(tool_spans.input_attribute(MESSAGES)["gen_ai.input.messages"])

    assert request == [
        {"role": "user", "parts": [{"type": "text", "content": "my secret plan"}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": '{"a": 1}'}],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "seen"}]},
        {"role": "user", "parts": [{"type": "text", "content": "and?"}, {"type": "image_url"}]},
    ]


def test_an_answer_and_a_call_are_captured() -> None:
    spans.capture_content(enabled=True)
    turn = Turn("Let me see.", calls=(ToolCall("c2", "look", "{}"),), finish_reason="tool_calls")

    (answer,) = json.loads(tool_spans.output_attribute(turn)["gen_ai.output.messages"])

    assert answer == {
        "role": "assistant",
        "parts": [
            {"type": "text", "content": "Let me see."},
            {"type": "tool_call", "id": "c2", "name": "look", "arguments": "{}"},
        ],
        "finish_reason": "tool_calls",
    }
    assert tool_spans.arguments_attribute({"a": "é"}) == {"gen_ai.tool.call.arguments": '{"a":"é"}'}
    assert tool_spans.result_attribute(["x"]) == {"gen_ai.tool.call.result": '["x"]'}


def test_what_is_captured_is_bounded() -> None:
    spans.capture_content(enabled=True)
    many = [{"role": "user", "content": "x" * 100_000}] * 500

    request = tool_spans.input_attribute(many)["gen_ai.input.messages"]
    result = tool_spans.result_attribute("y" * 100_000)["gen_ai.tool.call.result"]

    assert len(json.loads(request)) == 50
    assert len(request) < 50 * 8_200
    assert len(result) < 8_200
    assert result.endswith("(100002 characters)")


def test_a_word_that_no_one_knows_is_refused_with_the_cure() -> None:
    with pytest.raises(ValueError, match=f"{spans.VARIABLE}: use SPAN_ONLY, or leave it unset"):
        spans.is_content_wanted({spans.VARIABLE: "yes please"})
