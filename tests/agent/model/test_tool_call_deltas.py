"""Streamed tool calls, fragment by fragment, as each server was seen to send them."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_agent.core.model_types import Message, ModelRequest, ToolCall, Turn
from beckon_agent.model.response import CallAccumulator
from tests.agent.scripted_model import (
    ReceivedRequest,
    Reply,
    asks_for,
    calls,
    chunk,
    declaration,
    fragment,
    items_after,
    streamed,
    turn_after,
)

END = chunk(finish="tool_calls")


async def called(*payloads: object, tools: tuple[str, ...] = ()) -> list[tuple[str, str]]:
    """Return names and arguments of the calls that a stream makes."""
    turn = await turn_after(streamed(*payloads), request=asking(*map(declaration, tools)))
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", call.id) for call in turn.calls)
    assert len({call.id for call in turn.calls}) == len(turn.calls)
    return [(call.name, call.arguments) for call in turn.calls]


def asking(*tools: dict[str, object]) -> ModelRequest:
    """Return a request that declares these tools."""
    return ModelRequest([{"role": "user", "content": "hi"}], tools=tools)


async def test_openai_sends_the_name_once_and_the_arguments_in_pieces() -> None:
    assert await called(
        calls(fragment(0, "call_a", "f", "")),
        calls(fragment(0, arguments='{"ci')),
        calls(fragment(0, arguments='ty":"Paris"}')),
        calls(fragment(1, "call_b", "g", "")),
        calls(fragment(1, arguments="{}")),
        END,
    ) == [("f", '{"city":"Paris"}'), ("g", "{}")]


async def test_fragments_of_parallel_calls_may_come_interleaved() -> None:
    assert await called(
        calls(fragment(0, "call_a", "f", ""), fragment(1, "call_b", "g", "")),
        calls(fragment(0, arguments='{"x":')),
        calls(fragment(1, arguments='{"y":')),
        calls(fragment(1, arguments="2}"), fragment(0, arguments="1}")),
        END,
    ) == [("f", '{"x":1}'), ("g", '{"y":2}')]


async def test_ollama_gives_two_whole_calls_the_same_index() -> None:
    assert await called(
        calls(fragment(0, "call_a", "f", '{"x":1}'), fragment(0, "call_b", "f", '{"x":2}')), END
    ) == [("f", '{"x":1}'), ("f", '{"x":2}')]


async def test_calls_without_an_index_begin_with_a_name_and_go_on_without_one() -> None:
    assert await called(
        calls(fragment(None, "function-call-1", "f", '{"x":')),
        calls(fragment(None, arguments="1}")),
        calls(fragment(None, "function-call-2", "g", "{}")),
        END,
    ) == [("f", '{"x":1}'), ("g", "{}")]


async def test_whole_calls_with_neither_index_nor_id_are_as_many_as_their_names() -> None:
    assert await called(
        calls(fragment(None, None, "now", "{}")),
        calls(fragment(None, None, "now", "{}")),
        calls(fragment(None, None, "now", "")),
        END,
    ) == [("now", "{}"), ("now", "{}"), ("now", "{}")]


async def test_ollama_gpt_oss_sends_an_index_and_no_id() -> None:
    assert await called(calls(fragment(0, None, "f", "{}")), calls(fragment(1, None, "g", "{}")), END) == [
        ("f", "{}"),
        ("g", "{}"),
    ]


async def test_sglang_sends_a_null_id_for_all_but_the_first_call() -> None:
    second = {"index": 1, "id": None, "type": "function", "function": {"name": "g", "arguments": ""}}
    assert await called(
        calls(fragment(0, "call_a", "f", "{}")), calls(second), calls(fragment(1, arguments='{"y":2}')), END
    ) == [("f", "{}"), ("g", '{"y":2}')]


async def test_glm_sends_a_new_id_with_every_fragment_of_one_call() -> None:
    assert await called(
        calls(fragment(0, "call_DfU", "f", "")),
        calls(fragment(0, "call_LEN", None, '{"city": "Pa')),
        calls(fragment(0, "call_6bA", None, 'ris"}')),
        END,
    ) == [("f", '{"city": "Paris"}')]


async def test_old_vllm_goes_on_with_an_empty_id_and_begins_the_second_call_at_index_0_again() -> None:
    assert await called(
        calls(fragment(0, "chatcmpl-tool-1", "f", "")),
        calls(fragment(0, "", None, '{"x":1}')),
        calls(fragment(0, "chatcmpl-tool-2", "f", "")),
        calls(fragment(0, "", None, '{"x":2}')),
        END,
    ) == [("f", '{"x":1}'), ("f", '{"x":2}')]


async def test_sglang_ids_that_only_count_become_ids_that_are_unique() -> None:
    assert await called(
        calls(fragment(0, "0", "f", "")),
        calls(fragment(0, "0", None, '{"x":1}')),
        calls(fragment(0, "1", "f", "")),
        calls(fragment(0, "1", None, '{"x":2}')),
        END,
    ) == [("f", '{"x":1}'), ("f", '{"x":2}')]


async def test_an_id_of_an_earlier_turn_is_not_used_again() -> None:
    earlier = {"id": "aaaaaaaaa", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    history: list[Message] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": None, "tool_calls": [earlier]},
        {"role": "tool", "tool_call_id": "aaaaaaaaa", "content": "1"},
    ]
    reply = streamed(calls(fragment(0, "aaaaaaaaa", "f", "{}"), fragment(1, "bbbbbbbbb", "f", "{}")), END)
    turn = await turn_after(reply, request=ModelRequest(history))
    assert turn.calls[0].id != "aaaaaaaaa"
    assert turn.calls[1].id == "bbbbbbbbb"


async def test_lm_studio_goes_on_with_an_empty_name() -> None:
    assert await called(
        calls(fragment(0, "1234", "f", "")),
        calls(fragment(0, "1234", "", '{"x":')),
        calls(fragment(0, "1234", "", "1}")),
        END,
    ) == [("f", '{"x":1}')]


async def test_lm_studio_calls_without_a_function_are_dropped() -> None:
    assert (
        await called(calls({"id": "", "type": "function"}), calls({"index": 1, "function": None}), END) == []
    )


@pytest.mark.parametrize("odd", [None, [], "none", {}, [None], ["f"], [7], [[]], 7])
async def test_tool_calls_of_any_other_type_are_no_calls(odd: object) -> None:
    turn = await turn_after(streamed(chunk({"content": "hello", "tool_calls": odd}), chunk(finish="stop")))
    assert (turn.text, turn.calls) == ("hello", ())


async def test_one_call_that_is_not_in_a_list_is_a_call() -> None:
    assert await called(chunk({"tool_calls": fragment(0, "call_a", "f", "{}")}), END) == [("f", "{}")]


async def test_arguments_that_are_an_object_become_its_text() -> None:
    assert await called(calls(fragment(0, "call_a", "f", {"city": "Paris"})), END) == [
        ("f", '{"city":"Paris"}')
    ]


@pytest.mark.parametrize("nothing", ["", None, " "])
async def test_no_arguments_are_an_empty_object(nothing: object) -> None:
    entry = {"index": 0, "id": "call_a", "function": {"name": "now", "arguments": nothing}}
    assert await called(calls(entry), END, tools=("now",)) == [("now", "{}")]


async def test_arguments_lost_in_streaming_are_requested_once_without_it() -> None:
    lost = {"index": 0, "id": "call_a", "function": {"name": "f", "arguments": None}}
    whole = {"id": "call_b", "type": "function", "function": {"name": "f", "arguments": '{"city":"Paris"}'}}
    body = {"choices": [{"message": {"tool_calls": [whole]}, "finish_reason": "tool_calls"}]}
    seen: list[dict[str, object]] = []

    def unstreamed(sent_request: ReceivedRequest) -> Reply:
        seen.append(sent_request.body)
        return Reply([json.dumps(body).encode()], content_type="application/json")

    turn = await turn_after(
        streamed(chunk({"content": "Let me see."}), calls(lost), END),
        unstreamed,
        request=asking(declaration("f", "city")),
    )
    assert [(call.name, call.arguments) for call in turn.calls] == [("f", '{"city":"Paris"}')]
    assert turn.text == "Let me see."
    assert seen[0]["stream"] is False
    assert "stream_options" not in seen[0]


async def test_arguments_that_stay_lost_leave_the_call_as_it_was() -> None:
    lost = {"index": 0, "id": "call_a", "function": {"name": "f"}}
    reply = streamed(calls(lost), END)
    for second in (reply, Reply([b"no"], status=500)):
        turn = await turn_after(reply, second, request=asking(declaration("f", "city")))
        assert [(call.name, call.arguments) for call in turn.calls] == [("f", "{}")]


async def test_vllm_finishes_with_the_rest_of_the_call_without_id_type_and_name() -> None:
    assert await called(
        calls(fragment(0, "call_a", "f", '{"x":')),
        chunk({"tool_calls": [fragment(0, arguments="1}")]}, "tool_calls"),
    ) == [("f", '{"x":1}')]


@pytest.mark.parametrize("call_id", ["call_a", None])
@pytest.mark.parametrize(("before", "rest"), [('{"x":', "1}"), ('{"x":1}', ""), ("", '{"x":1}')])
async def test_vllm_ascend_repeats_the_name_in_the_finishing_chunk(
    call_id: str | None, before: str, rest: str
) -> None:
    last = chunk({"tool_calls": [fragment(0, call_id, "f", rest)]}, "tool_calls")
    assert await called(calls(fragment(0, "call_a", "f", before)), last) == [("f", '{"x":1}')]


async def test_two_objects_in_one_text_are_left_to_who_knows_the_schema() -> None:
    text = '{"path":"a.rs"}{"path":"b.rs"}'
    assert await called(calls(fragment(0, "call_a", "read", text)), END) == [("read", text)]


async def test_arguments_that_end_early_stay_what_they_are_and_are_not_guessed() -> None:
    turn = await turn_after(
        streamed(calls(fragment(0, "call_a", "f", '{"city": "Par')), chunk(finish="length"))
    )
    assert turn.calls[0].arguments == '{"city": "Par'
    assert turn.finish_reason == "length"


async def test_two_calls_with_the_same_id_get_different_ones() -> None:
    assert await called(
        calls(fragment(0, "abcdefghi", "f", "{}")), calls(fragment(1, "abcdefghi", "g", "{}")), END
    ) == [("f", "{}"), ("g", "{}")]


async def test_a_whole_call_may_come_in_one_chunk() -> None:
    assert await called(chunk({"tool_calls": [fragment(0, "1", "f", '{"x":1}')]}, "tool_calls")) == [
        ("f", '{"x":1}')
    ]


async def test_a_fragment_with_neither_name_nor_id_goes_on_with_the_call_before_it() -> None:
    assert await called(
        calls(fragment(None, "call_a", "f", '{"x":')), calls(fragment(0, arguments="1}")), END
    ) == [("f", '{"x":1}')]


async def test_an_index_that_is_no_number_is_none() -> None:
    entry = {"index": "9" * 5000, "id": "call_a", "function": {"name": "f", "arguments": ""}}

    assert len(await called(calls(entry), calls({"index": "²", "function": {"arguments": "{}"}}), END)) == 1


async def test_an_index_may_be_a_string_and_an_id_a_number() -> None:
    entry = {"index": "0", "id": 1, "function": {"name": "f", "arguments": ""}}
    assert await called(calls(entry), calls({"index": "0", "function": {"arguments": "{}"}}), END) == [
        ("f", "{}")
    ]


async def test_geminis_thought_signature_is_also_taken_from_a_delta_of_its_own() -> None:
    signature = {"google": {"thought_signature": "c2ln"}}
    turn = await turn_after(
        streamed(
            calls(fragment(0, "call_a", "f", "{}")),
            calls(fragment(1, "call_b", "g", "{}")),
            calls({"index": 0, "extra_content": signature}),
            calls({"index": 0, "extra_content": {"google": {"more": 1}}}),
            END,
        )
    )
    assert turn.calls[0].extra == {"extra_content": {"google": {"thought_signature": "c2ln", "more": 1}}}
    assert turn.calls[1].extra == {}
    assert [call.arguments for call in turn.calls] == ["{}", "{}"]


async def test_a_signature_may_come_before_the_name() -> None:
    turn = await turn_after(
        streamed(calls({"index": 0, "extra_content": {"a": 1}}), calls(fragment(0, "call_a", "f", "{}")), END)
    )
    assert [(call.name, call.extra) for call in turn.calls] == [("f", {"extra_content": {"a": 1}})]


async def test_an_id_that_carries_a_thought_signature_stays_as_it_is() -> None:
    turn = await turn_after(streamed(calls(fragment(0, "call_1__thought__c2ln", "f", "{}")), END))
    assert turn.calls[0].id == "call_1__thought__c2ln"


async def test_calls_come_whole_before_the_turn_that_holds_them() -> None:
    *before, turn = await items_after(asks_for(("f", {"x": 1}), ("g", {})))
    assert isinstance(turn, Turn)
    assert tuple(before) == turn.calls
    assert all(isinstance(call, ToolCall) for call in before)


CALLED = st.lists(
    st.tuples(
        st.sampled_from(["f", "g", "now"]),
        st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=3),
    ),
    min_size=1,
    max_size=4,
)
STYLES = ["openai", "same index", "no index", "new ids", "no ids", "whole"]


def fragments(made: list[tuple[str, dict[str, object]]], style: str, cut: int) -> list[dict[str, object]]:
    """Return the fragments of these calls as one kind of server sends them."""
    sent: list[dict[str, object]] = []
    for place, (name, arguments) in enumerate(made):
        text = json.dumps(arguments)
        where = cut % len(text) if style != "whole" else len(text)
        index = {"no index": None, "same index": 0}.get(style, place)
        first_id = None if style == "no ids" else f"call_{place}"
        later_id = f"call_{place}_again" if style == "new ids" else None
        sent.append(fragment(index, first_id, name, text[:where]))
        if text[where:]:
            sent.append(fragment(index, later_id, None, text[where:]))
    return sent


@given(CALLED, st.sampled_from(STYLES), st.integers(0, 100), st.booleans())
def test_the_calls_are_the_same_in_every_style_and_wherever_arguments_are_cut(
    made: list[tuple[str, dict[str, object]]], style: str, cut: int, grouped: bool
) -> None:
    accumulator = CallAccumulator()
    sent = fragments(made, style, cut)
    for entries in [sent] if grouped else [[entry] for entry in sent]:
        accumulator.feed(entries)
    found = accumulator.finish()
    assert [(call.name, json.loads(call.arguments)) for call in found] == made
    assert len({call.id for call in found}) == len(made)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["index", "id", "function", "name", "arguments", "type", "x"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_no_value_of_tool_calls_is_an_accident(odd: object) -> None:
    accumulator = CallAccumulator()
    accumulator.feed(odd)
    accumulator.feed(odd)
    for call in accumulator.finish():
        assert call.name or call.arguments != "{}"
