"""How an answer is framed, and how it ends: streams, bodies, errors, usage."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_agent.core.model_types import BROKE_OFF, Turn, Usage
from beckon_agent.core.run_events import TextDelta
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import ModelRefused, ModelUnavailable, StreamBroken
from beckon_agent.model.sse import UnreadableAnswer, read_payloads
from tests.agent.scripted_model import (
    KEY,
    QUESTION,
    Reply,
    answers,
    calls,
    chunk,
    fragment,
    items_of,
    says,
    scripted_model,
    sse,
    streamed,
    turn_after,
)
from tests.patience import PATIENCE

HELLO = chunk({"content": "hello"})
STOP = chunk(finish="stop")


@pytest.mark.parametrize("reason", ["stop", "tool_call", "network_error", None])
async def test_calls_count_whatever_the_finish_reason_says(reason: str | None) -> None:
    turn = await turn_after(streamed(calls(fragment(0, "1", "f", "{}")), chunk(finish=reason)))
    assert [call.name for call in turn.calls] == ["f"]
    assert turn.finish_reason == reason


@pytest.mark.parametrize("odd", [7, {}, ["stop"]])
async def test_a_finish_reason_of_another_type_is_none(odd: object) -> None:
    finish = {"choices": [{"index": 0, "delta": {}, "finish_reason": odd}]}
    assert (await turn_after(streamed(HELLO, finish))).finish_reason is None


async def test_sglang_sends_two_finishing_chunks_and_the_first_counts() -> None:
    turn = await turn_after(
        streamed(calls(fragment(0, "1", "f", "{}")), chunk(finish="tool_calls"), chunk(finish="stop"))
    )
    assert (len(turn.calls), turn.finish_reason) == (1, "tool_calls")


async def test_the_finishing_chunk_may_hold_the_last_arguments() -> None:
    last = chunk({"tool_calls": [fragment(0, "1", "f", "1}")]}, "tool_calls")
    turn = await turn_after(streamed(calls(fragment(0, "1", "f", '{"x":')), last))
    assert [call.arguments for call in turn.calls] == ['{"x":1}']


async def test_azure_begins_with_its_filter_results_and_no_choices() -> None:
    first = {"id": "", "choices": [], "created": 0, "model": "", "object": "", "prompt_filter_results": [{}]}
    assert (await turn_after(streamed(first, HELLO, STOP))).text == "hello"


async def test_azure_sends_late_filter_results_as_choices_without_a_delta() -> None:
    late: dict[str, object] = {"choices": [{"index": 0, "finish_reason": None, "content_filter_results": {}}]}
    turn = await turn_after(streamed(HELLO, late, STOP, late))
    assert (turn.text, turn.finish_reason) == ("hello", "stop")


async def test_usage_is_the_last_that_came() -> None:
    counted = [{"usage": {"prompt_tokens": 5, "completion_tokens": n}} for n in (1, 2)]
    last = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}}
    turn = await turn_after(streamed(*({**HELLO, **usage} for usage in counted), STOP, last))
    assert turn.usage == Usage(5, 3)
    assert turn.usage.total_tokens == 8


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"prompt_tokens": None, "completion_tokens": 1},
        {"prompt_tokens": -1, "completion_tokens": 1},
        {"prompt_tokens": 2**63, "completion_tokens": 1},
        {"prompt_tokens": 1, "completion_tokens": True},
        "none",
        [],
    ],
)
async def test_usage_that_did_not_come_or_cannot_be_is_unknown_and_not_nothing(usage: object) -> None:
    assert (await turn_after(streamed({**HELLO, "usage": usage}, STOP))).usage is None


async def test_details_of_usage_that_cannot_be_are_left_out() -> None:
    details = {"cached_tokens": 1, "audio_tokens": -1, "other_tokens": 2**63}
    usage = {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": details}

    assert (await turn_after(streamed({**HELLO, "usage": usage}, STOP))).usage == Usage(
        5, 1, {"cached_tokens": 1}
    )


@pytest.mark.parametrize("gap", [{"choices": None}, {"choices": None, "text": None}, {}, {"choices": [None]}])
async def test_null_choices_are_skipped(gap: object) -> None:
    assert (await turn_after(streamed(gap, HELLO, gap, STOP))).text == "hello"


async def test_comment_lines_keep_the_connection_alive_and_say_nothing() -> None:
    turn = await turn_after(
        Reply([b": OPENROUTER PROCESSING\n\n", b": keep-alive\n\n", sse(HELLO, ": keep-alive", STOP)])
    )
    assert turn.text == "hello"


async def test_nothing_but_comments_is_no_answer() -> None:
    with pytest.raises(ModelUnavailable, match="before it began"):
        await turn_after(Reply([b": OPENROUTER PROCESSING\n\n"]))


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "out of memory", "type": "server_error", "code": 500}},
        {"error": "out of memory"},
        {"object": "error", "message": "out of memory"},
        [{"error": {"code": 503, "message": "out of memory", "status": "UNAVAILABLE"}}],
    ],
)
async def test_an_error_within_a_200_is_raised(error: object) -> None:
    with pytest.raises(ModelUnavailable, match="out of memory"):
        await turn_after(streamed(error))
    with pytest.raises(StreamBroken, match="out of memory"):
        await turn_after(streamed(HELLO, error))


async def test_an_error_within_a_200_that_names_a_client_error_is_a_refusal() -> None:
    error = {"error": {"message": "bad tool", "code": 400}}
    with pytest.raises(ModelRefused, match="bad tool"):
        await turn_after(streamed(error))


async def test_an_error_event_is_an_error_whatever_its_data_is() -> None:
    with pytest.raises(StreamBroken, match="went away"):
        await turn_after(Reply([sse(HELLO, done=False), b'event: error\ndata: {"message":"went away"}\n\n']))


async def test_an_error_without_a_frame_in_the_middle_of_a_stream_is_an_error() -> None:
    with pytest.raises(StreamBroken, match="upstream"):
        await turn_after(Reply([sse(HELLO, done=False), b'{"error":{"message":"upstream died"}}\n']))


async def test_an_empty_error_member_is_none() -> None:
    assert (await turn_after(streamed({**HELLO, "error": None}, STOP))).text == "hello"


async def test_a_stream_may_end_without_done_or_without_a_finishing_chunk() -> None:
    assert (await turn_after(streamed(HELLO, STOP, done=False))).finish_reason == "stop"
    assert (await turn_after(streamed(HELLO))).finish_reason is None


async def test_a_stream_that_ends_with_neither_broke_off() -> None:
    turn = await turn_after(streamed(HELLO, done=False))
    assert (turn.text, turn.finish_reason) == ("hello", BROKE_OFF)


async def test_one_json_body_is_whole_without_a_finish_reason() -> None:
    turn = await turn_after(answers({"choices": [{"message": {"content": "hello"}}]}))
    assert (turn.text, turn.finish_reason) == ("hello", None)


async def test_an_answer_that_broke_off_before_anything_was_shown_is_requested_once_more() -> None:
    role = chunk({"role": "assistant", "content": ""})
    half = streamed(role, calls(fragment(0, "1", "f", '{"x":')), done=False)
    async with scripted_model(half, says("hello")) as model, ModelClient(model.base_url, KEY, "m") as client:
        *_, turn = await items_of(client)
    assert isinstance(turn, Turn)
    assert (turn.text, turn.calls, turn.finish_reason) == ("hello", (), "stop")


async def test_an_answer_that_breaks_off_twice_is_not_requested_again() -> None:
    role = chunk({"role": "assistant", "content": ""})
    async with (
        scripted_model(*[streamed(role, done=False)] * 3) as model,
        ModelClient(model.base_url, KEY, "m") as client,
    ):
        *_, turn = await items_of(client)
    assert isinstance(turn, Turn)
    assert (turn.text, turn.finish_reason, len(model.requests)) == ("", BROKE_OFF, 2)


@pytest.mark.parametrize("finish", [None, "length"])
async def test_a_last_call_that_was_cut_off_before_its_arguments_has_none(finish: str | None) -> None:
    entries = fragment(0, "1", "f"), fragment(1, "2", "g")
    reply = streamed(HELLO, *map(calls, entries), *([chunk(finish=finish)] if finish else []), done=False)
    turn = await turn_after(reply)
    assert [(call.name, call.arguments) for call in turn.calls] == [("f", "{}"), ("g", "")]


@pytest.mark.parametrize("opening", [b"message: 1", b"x-request-id:", b" ", b" : hello", b" event: message"])
async def test_a_stream_may_open_with_an_unknown_field_or_a_blank(opening: bytes) -> None:
    assert (await turn_after(Reply([opening + b"\n", sse(HELLO, STOP)]))).text == "hello"
    assert (await turn_after(Reply([opening + b"\n " + sse(HELLO, STOP)]))).text == "hello"


async def test_a_line_that_only_looks_like_a_field_is_shown_as_the_error_that_it_is() -> None:
    with pytest.raises(ModelUnavailable, match="no chat completion: Error: out of memory"):
        await turn_after(Reply([b"Error: out of memory\n"]))


async def test_a_last_event_counts_without_the_blank_line_after_it() -> None:
    body = sse(HELLO, chunk({"content": "!"}), done=False).rstrip(b"\n")
    assert (await turn_after(Reply([body]))).text == "hello!"


async def test_events_need_no_blank_line_between_them() -> None:
    lines = b"\n".join(sse(HELLO, done=False).strip() for _ in range(3))
    assert (await turn_after(Reply([lines]))).text == "hellohellohello"


async def test_ids_models_and_times_may_be_missing_or_null() -> None:
    bare = {"choices": [{"delta": {"content": "hello"}}]}
    nulls = {
        "id": None,
        "model": None,
        "created": None,
        "choices": [{"index": None, "delta": {"content": "!"}}],
    }
    assert (await turn_after(streamed(bare, nulls))).text == "hello!"


async def test_only_the_first_choice_is_read() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "another answer"}}]}
    assert (await turn_after(streamed(HELLO, other, STOP))).text == "hello"


async def test_a_message_beside_a_delta_is_not_read_twice() -> None:
    both = {"choices": [{"index": 0, "delta": {"content": "hello"}, "message": {"content": "hello"}}]}
    end = {"choices": [{"index": 0, "delta": {}, "message": {"content": "hello"}, "finish_reason": "stop"}]}
    assert (await turn_after(streamed(both, end))).text == "hello"


@pytest.mark.parametrize(
    "delta", [{}, {"role": "assistant", "content": ""}, {"content": None, "tool_calls": []}]
)
async def test_a_message_beside_a_delta_that_says_nothing_is_the_answer(delta: dict[str, object]) -> None:
    message = {"content": "hello", "reasoning": "hm", "tool_calls": [fragment(0, "1", "f", '{"x":1}')]}
    choice = {"index": 0, "delta": delta, "message": message, "finish_reason": "stop"}
    for reply in (answers({"choices": [choice]}), streamed({"choices": [choice]})):
        turn = await turn_after(reply)
        assert (turn.text, turn.reasoning) == ("hello", "hm")
        assert [(call.name, call.arguments) for call in turn.calls] == [("f", '{"x":1}')]


async def test_a_message_beside_deltas_gives_the_calls_that_no_delta_brought() -> None:
    words = [
        {"choices": [{"delta": {"content": word}, "message": {"content": word}}]} for word in ("hel", "lo")
    ]
    message = {"content": "hello", "tool_calls": [fragment(0, "1", "f", "{}")]}
    end = {"choices": [{"delta": {}, "message": message, "finish_reason": "tool_calls"}]}
    turn = await turn_after(streamed(*words, end))
    assert (turn.text, [call.name for call in turn.calls]) == ("hello", ["f"])


@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream", "text/plain", ""])
async def test_a_server_that_ignores_stream_is_understood_by_its_body(content_type: str) -> None:
    message = {
        "role": "assistant",
        "content": "hello",
        "reasoning": "hm",
        "tool_calls": [fragment(None, "1", "f")],
    }
    completion = {
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2},
    }
    body = json.dumps(completion, indent=2).encode()
    turn = await turn_after(Reply([b"\n", body[:40], body[40:]], content_type=content_type))
    assert (turn.text, turn.reasoning, turn.finish_reason) == ("hello", "hm", "tool_calls")
    assert [(call.name, call.arguments) for call in turn.calls] == [("f", "{}")]
    assert turn.usage == Usage(1, 2)


@pytest.mark.parametrize("body", [b"<html><body>Welcome</body></html>", b"hello", b"data: hello\n\n", b"{"])
async def test_what_is_no_completion_is_not_taken_for_one(body: bytes) -> None:
    with pytest.raises(ModelUnavailable, match="no chat completion"):
        await turn_after(Reply([body]))


@pytest.mark.parametrize("body", [{}, [], "hello", {"choices": []}, {"result": "hello"}, None])
async def test_json_without_a_choice_is_no_answer(body: object) -> None:
    with pytest.raises(ModelUnavailable, match="before it began"):
        await turn_after(answers(body))


async def test_a_model_may_have_nothing_to_say() -> None:
    turn = await turn_after(streamed(STOP))
    assert (turn.text, turn.calls, turn.finish_reason) == ("", (), "stop")


async def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beckon_agent.model.sse.MAX_BYTES", 10_000)
    with pytest.raises(StreamBroken, match="more than 10000 bytes"):
        await turn_after(streamed(*[HELLO] * 100))


async def test_the_first_words_come_before_the_last_are_written() -> None:
    rest = asyncio.Event()
    reply = says("hello", " world")
    async with (
        scripted_model(Reply(reply.pieces, holds=rest)) as model,
        ModelClient(model.base_url, KEY, "m") as client,
    ):
        stream = client.stream(QUESTION)
        assert await asyncio.wait_for(anext(stream), PATIENCE) == TextDelta("hello")
        rest.set()
        assert await anext(stream) == TextDelta(" world")
        await stream.aclose()


async def test_a_caller_that_stops_reading_hangs_up() -> None:
    never = asyncio.Event()
    reply = Reply(says("hello", " world").pieces, holds=never)
    async with scripted_model(reply) as model, ModelClient(model.base_url, KEY, "m") as client:
        stream = client.stream(QUESTION)
        await anext(stream)
        await stream.aclose()
        await asyncio.wait_for(model.hung_up.wait(), PATIENCE)


async def test_one_connection_serves_one_answer_after_another() -> None:
    async with scripted_model(says("a"), says("b")) as model, ModelClient(model.base_url, KEY, "m") as client:
        await items_of(client)
        await items_of(client)
    assert len({request.headers["x-peer"] for request in model.requests}) == 1


async def in_chunks(chunks: list[bytes]) -> AsyncIterator[bytes]:
    """Yield chunks as a transport would."""
    for one in chunks:
        yield one


async def read(chunks: list[bytes]) -> list[tuple[str, object]]:
    """Return all payloads of a body in these chunks."""
    return [(event, data) async for event, data, _ in read_payloads(in_chunks(chunks))]


def test_an_empty_chunk_between_cr_and_lf_is_no_blank_line() -> None:
    chunks = [b'data: {"a":\r', b"", b"\ndata: 1}\r\n\r\n"]

    assert asyncio.run(read(chunks)) == [("", {"a": 1})]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=5),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=3), children, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(
    events=st.lists(st.dictionaries(st.text(max_size=4), JSON, max_size=3), min_size=1, max_size=4),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    indent=st.sampled_from([None, 1]),
    cuts=st.lists(st.integers(0, 400), max_size=8),
)
def test_events_are_the_same_wherever_they_are_cut_and_however_lines_end(
    events: list[dict[str, object]], end: bytes, indent: int | None, cuts: list[int]
) -> None:
    lines: list[bytes] = [b": comment"]
    for event in events:
        lines += [b"data: " + line.encode() for line in json.dumps(event, indent=indent).split("\n")]
        lines += [b""]
    body = end.join([*lines, b"data: [DONE]", b"", b""])
    bounds = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    chunks = [body[start:stop] for start, stop in pairwise(bounds)]
    assert asyncio.run(read(chunks)) == [("", event) for event in events]


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.binary(max_size=30) | st.sampled_from([b"data: ", b"\n", b"{", b"}", b"[DONE]"]), max_size=12)
)
def test_any_bytes_are_payloads_or_an_unreadable_answer(chunks: list[bytes]) -> None:
    with suppress(UnreadableAnswer):
        found = asyncio.run(read(chunks))
        assert all(isinstance(event, str) for event, _ in found)
