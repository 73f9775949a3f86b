"""Text and reasoning: what is shown, what is kept apart, and what a limit cut off."""

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_agent.core.model_types import ModelRequest, Turn, Usage
from beckon_agent.core.run_events import ReasoningDelta, TextDelta
from beckon_agent.model.reasoning import ThinkSplitter
from tests.agent.scripted_model import (
    QUESTION,
    ReceivedRequest,
    Reply,
    calls,
    chunk,
    fragment,
    items_after,
    sse,
    streamed,
    turn_after,
)

STOP = chunk(finish="stop")


@pytest.mark.parametrize("member", ["reasoning_content", "reasoning"])
async def test_reasoning_is_separated_from_the_answer(member: str) -> None:
    items = await items_after(
        streamed(chunk({member: "Let me "}), chunk({member: "see."}), chunk({"content": "4"}), STOP)
    )
    assert items == [
        ReasoningDelta("Let me "),
        ReasoningDelta("see."),
        TextDelta("4"),
        Turn("4", "Let me see.", finish_reason="stop"),
    ]


async def test_reasoning_under_both_names_is_read_once() -> None:
    turn = await turn_after(streamed(chunk({"reasoning_content": "hm", "reasoning": "hm"}), STOP))
    assert turn.reasoning == "hm"


@pytest.mark.parametrize("odd", [None, "", 7, {"text": "hm"}, []])
async def test_reasoning_of_another_type_is_none(odd: object) -> None:
    turn = await turn_after(streamed(chunk({"reasoning": odd, "content": "4"}), STOP))
    assert (turn.reasoning, turn.text) == ("", "4")


async def test_magistral_sends_content_in_parts() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Let me see."}]}
    said = {"type": "text", "text": "4"}
    turn = await turn_after(
        streamed(chunk({"content": [thought]}), chunk({"content": [said, "!", None]}), STOP)
    )
    assert (turn.reasoning, turn.text) == ("Let me see.", "4!")


async def test_think_tags_in_the_content_are_reasoning() -> None:
    words = ["<thi", "nk>\nLet me", " see.</th", "ink>", "\n\n", "4 <think>", "!"]
    turn = await turn_after(streamed(*(chunk({"content": word}) for word in words), STOP))
    assert turn.reasoning == "\nLet me see."
    assert turn.text == "4 <think>!"


async def test_think_tags_in_a_whole_completion_are_reasoning() -> None:
    message = {"content": "<think>hm</think>\n\n4"}
    turn = await turn_after(streamed({"choices": [{"message": message, "finish_reason": "stop"}]}))
    assert (turn.reasoning, turn.text) == ("hm", "4")


async def test_blanks_before_tool_calls_are_not_shown() -> None:
    blank = [chunk({"content": "\n\n"}), chunk({"content": " "})]
    items = await items_after(
        streamed(*blank, calls(fragment(0, "1", "f", "{}")), chunk(finish="tool_calls"))
    )
    assert not [item for item in items if isinstance(item, TextDelta)]
    assert isinstance(items[-1], Turn)
    assert items[-1].text == ""


async def test_a_refusal_is_what_the_model_says() -> None:
    turn = await turn_after(streamed(chunk({"content": None, "refusal": "I cannot."}), STOP))
    assert (turn.text, turn.details.refusal) == ("", "I cannot.")


async def test_half_a_character_is_replaced_and_not_passed_on() -> None:
    turn = await turn_after(Reply([b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n']))
    assert turn.text.encode() == "a\ufffd".encode()


def escaped(delta: dict[str, object]) -> bytes:
    """Return one event whose text may have half a character: JSON escapes it."""
    return b"data: " + json.dumps(chunk(delta)).encode() + b"\n\n"


@pytest.mark.parametrize("member", ["content", "reasoning_content", "refusal", "arguments"])
async def test_a_character_that_is_split_over_two_chunks_arrives_whole(member: str) -> None:
    pieces = ["a\ud83d", "", "\ude00b\ud83d", "\ude00", "\ude00\ud83d"]  # the last two are halves of nothing
    if member == "arguments":
        deltas: list[dict[str, object]] = [
            {"tool_calls": [fragment(0, "1", "f" if not n else None, piece)]}
            for n, piece in enumerate(pieces)
        ]
    else:
        deltas = [{member: piece} for piece in pieces]
    turn = await turn_after(Reply([*map(escaped, deltas), sse(STOP)]))
    found = {"content": turn.text, "reasoning_content": turn.reasoning, "refusal": turn.details.refusal}
    found["arguments"] = "".join(call.arguments for call in turn.calls)
    assert found[member] == "a\U0001f600b\U0001f600\ufffd\ufffd"


async def test_a_limit_that_reasoning_used_up_is_raised_once() -> None:
    limits: list[object] = []

    def starved(sent: ReceivedRequest) -> Reply:
        limits.append(sent.body["max_tokens"])
        usage = {"prompt_tokens": 1, "completion_tokens": sent.body["max_tokens"]}
        return streamed(chunk({"reasoning": "hm "}), chunk(finish="length"), {"choices": [], "usage": usage})

    request = ModelRequest(QUESTION.messages, max_tokens=100)
    turn = await turn_after(starved, starved, request=request)
    assert limits == [100, 400]
    assert (turn.text, turn.finish_reason, turn.usage) == ("", "length", Usage(2, 500))

    limits.clear()
    items = await items_after(starved, streamed(chunk({"content": "4"}), STOP), request=request)
    assert items[:2] == [ReasoningDelta("hm "), TextDelta("4")]
    assert limits == [100]


@pytest.mark.parametrize(
    "reply",
    [
        streamed(chunk({"content": "4"}), chunk(finish="length")),
        streamed(calls(fragment(0, "1", "f", "{")), chunk(finish="length")),
        streamed(chunk({"reasoning": "hm"}), STOP),
    ],
)
async def test_an_answer_that_was_only_cut_short_is_not_requested_again(reply: Reply) -> None:
    request = ModelRequest(QUESTION.messages, max_tokens=100)
    assert (await turn_after(reply, request=request)).usage is None


async def test_without_a_limit_there_is_none_to_raise() -> None:
    turn = await turn_after(streamed(chunk({"reasoning": "hm"}), chunk(finish="length")))
    assert turn.finish_reason == "length"


def split(pieces: Sequence[str]) -> tuple[str, str]:
    """Return reasoning and text of content that comes in these pieces."""
    splitter = ThinkSplitter()
    found = [item for piece in pieces for item in splitter.feed(piece)] + splitter.close()
    assert all(item.text for item in found)
    return (
        "".join(item.text for item in found if isinstance(item, ReasoningDelta)),
        "".join(item.text for item in found if isinstance(item, TextDelta)),
    )


WORDS = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<thinking>", "</thinking>", "[THINK]", "[/THINK]", "<", "/", "\n", " ", "a"]
    ),
    max_size=12,
).map("".join)


@given(WORDS, st.lists(st.integers(0, 60), max_size=8))
def test_content_is_split_alike_wherever_its_pieces_break(content: str, cuts: list[int]) -> None:
    bounds = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    pieces = [content[start:stop] for start, stop in pairwise(bounds)]
    assert split(pieces) == split([content]) == split(list(content))


@pytest.mark.parametrize(
    ("content", "reasoning", "text"),
    [
        ("plain", "", "plain"),
        ("  indented", "", "  indented"),
        ("\n<think>a</think><think>b</think>\n c", "ab", "c"),
        ("[THINK]a[/THINK]b", "a", "b"),
        ("<think>never closed", "never closed", ""),
        ("<think></think>", "", ""),
        ("<thin", "", "<thin"),
        ("<thinly veiled", "", "<thinly veiled"),
        ("use <think> tags", "", "use <think> tags"),
        ("<think>a</thi</think>b", "a</thi", "b"),
        ("   ", "", ""),
    ],
)
def test_think_tags_count_only_before_the_answer(content: str, reasoning: str, text: str) -> None:
    assert split([content]) == (reasoning, text)
