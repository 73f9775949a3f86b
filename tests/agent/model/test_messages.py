"""Whatever was stored, the next request is one that the strictest server accepts."""

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_agent.core.model_types import Message, call_id, derived_id
from beckon_agent.model.capabilities import Profile, profile_for
from beckon_agent.model.messages import NO_RESULT, call_ids, repair_messages

MISTRAL = profile_for("https://api.mistral.ai/v1", "mistral-small")
DEEPSEEK = profile_for("https://api.deepseek.com", "deepseek-chat")
OPENAI = profile_for("https://api.openai.com/v1", "gpt-4.1")
ZHIPU = profile_for("https://api.z.ai/api/paas/v4", "glm-5")
O1 = Profile(system_role="user")
PROFILES = [Profile(), MISTRAL, DEEPSEEK, OPENAI, ZHIPU, O1]
GENERIC = PROFILES[0]


def called(*ids: str, **more: object) -> Message:
    """Return an assistant message with calls of these ids."""
    calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def result(wire_id: str, content: object) -> Message:
    """Return a result."""
    return {"role": "tool", "tool_call_id": wire_id, "content": content}


def complaints(messages: list[Message], profile: Profile) -> list[str]:
    """Return what the strictest server of this kind would say against a conversation."""
    return [
        *format_complaints(messages, profile),
        *pairing_complaints(messages),
        *order_complaints(messages, profile),
    ]


def format_complaints(messages: list[Message], profile: Profile) -> list[str]:
    """Check each message by itself, and all ids."""
    found = []
    ids = [call["id"] for message in messages for call in message.get("tool_calls", [])]
    if len(ids) != len(set(ids)):
        found.append("duplicate tool call id")
    for message in messages:
        content, calls = message["content"], message.get("tool_calls")
        if message["role"] not in {"system", "user", "assistant", "tool"}:
            found.append("unknown role")
        if calls == [] or (calls and message["role"] != "assistant"):
            found.append("tool_calls where there may be none")
        if (
            not calls
            and message["role"] != "tool"
            and not (content.strip() if isinstance(content, str) else content)
        ):
            found.append("an empty message")
        if profile.string_content and not isinstance(content, str):
            found.append("content is no string")
        if profile.reasoning_required and calls and not isinstance(message.get("reasoning_content"), str):
            found.append("missing reasoning_content")
        found += [complaint for call in calls or [] for complaint in call_complaints(call, profile)]
    json.dumps(messages, ensure_ascii=False).encode()
    return found


def call_complaints(call: dict[str, Any], profile: Profile) -> list[str]:
    """Check one call."""
    found = []
    if not re.fullmatch("[a-zA-Z0-9]{9}", call["id"]) and (
        profile.nine_char_ids or "__thought__" not in call["id"]
    ):
        found.append("the id is not nine letters and digits")
    if call["type"] != "function" or not re.fullmatch("[a-zA-Z0-9_-]{1,64}", call["function"]["name"]):
        found.append("the name does not match the pattern")
    if not isinstance(json.loads(call["function"]["arguments"]), dict):
        found.append("the arguments are not an object")
    if not profile.replay_extra and call.keys() != {"id", "type", "function"}:
        found.append("extra inputs are not permitted")
    return found


def pairing_complaints(messages: list[Message]) -> list[str]:
    """Check that every call is answered right after it, in its order, and nothing else is."""
    found: list[str] = []
    open_calls: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if not open_calls or message["tool_call_id"] != open_calls.pop(0):
                found.append("a result without its call")
            if not isinstance(message["content"], str):
                found.append("a result that is no string")
            continue
        if open_calls:
            found.append("calls must be followed by their results")
        open_calls = [call["id"] for call in message.get("tool_calls", [])]
    if open_calls:
        found.append("calls without results at the end")
    return found


def order_complaints(messages: list[Message], profile: Profile) -> list[str]:
    """Check who speaks after whom."""
    found = []
    roles = [message["role"] for message in messages]
    if profile.system_role == "user" and "system" in roles:
        found.append("no system role")
    if profile.single_system and "system" in roles[1:]:
        found.append("the system message must be the first and only one")
    plain = {"role", "content"}
    for before, after in pairwise(messages):
        pair = before["role"], after["role"]
        if profile.assistant_after_tool and pair == ("tool", "user"):
            found.append("unexpected role 'user' after role 'tool'")
        if pair == ("user", "user") and before.keys() == after.keys() == plain:
            found.append("roles must alternate")
    return found


@pytest.mark.parametrize(
    "bad",
    [
        [{"role": "critic", "content": "hi"}],
        [{"role": "user", "content": " "}],
        [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
        [{"role": "user", "content": "a"}, {"role": "system", "content": "b"}],
        [called("aaaaaaaaa")],
        [called("call_1"), result("call_1", "1")],
        [called("aaaaaaaaa"), {"role": "user", "content": "a"}, result("aaaaaaaaa", "1")],
        [called("aaaaaaaaa"), result("aaaaaaaaa", "1"), result("aaaaaaaaa", "2")],
        [called("aaaaaaaaa"), result("bbbbbbbbb", "1")],
        [called("aaaaaaaaa"), result("aaaaaaaaa", None)],
    ],
)
def test_the_checker_of_these_tests_finds_what_is_wrong(bad: list[Message]) -> None:
    assert complaints(bad, GENERIC)


TEXT = st.sampled_from(["", " ", "hello", "a\nb", "\ud83d", "ü", "</s>"])
WIRE_ID = st.sampled_from(
    ["", "call_1", "call_2", "aaaaaaaaa", "bbbbbbbbb", "x__thought__sig", "0", "call_" + "x" * 40]
)
ARGUMENTS: st.SearchStrategy[object] = st.sampled_from(
    ["{}", '{"x":1}', "", '{"city": "Par', "null", "[1]", '"{}"', "{'x': 1}", '{"x":NaN}', '{"x":"\\ud800"}']
) | st.sampled_from([None, {"x": 1}, [], 7])
NAME = st.sampled_from(["f", "get.weather", 'report" />', '{"q":1} | call', "", "ü" * 70, "a" * 65])
PARTS = st.sampled_from(
    [
        [],
        [{"type": "text", "text": "see"}],
        [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:,"}}],
        ["bare"],
    ]
)
CONTENT = TEXT | st.none() | PARTS | st.sampled_from([7, {"result": 1}])
CALL = st.fixed_dictionaries(
    {"id": WIRE_ID | st.none(), "function": st.fixed_dictionaries({"name": NAME, "arguments": ARGUMENTS})},
    optional={
        "index": st.just(0),
        "type": st.just("function"),
        "extra_content": st.just({"google": {"a": 1}}),
    },
)
ASSISTANT = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": CONTENT},
    optional={
        "tool_calls": st.lists(CALL | st.just({"id": "", "type": "function"}), max_size=3) | st.none(),
        "reasoning_content": TEXT,
        "refusal": st.none(),
    },
)
RESULT = st.fixed_dictionaries({"role": st.just("tool"), "tool_call_id": WIRE_ID, "content": CONTENT})
OTHER = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "user", "system", "developer", "function", "critic", ""]),
        "content": CONTENT,
    },
    optional={"name": st.just("ann")},
)
HISTORY: st.SearchStrategy[list[Message]] = st.lists(ASSISTANT | RESULT | OTHER, max_size=10)


@settings(max_examples=300, deadline=None)
@given(HISTORY, st.sampled_from(PROFILES))
def test_any_history_becomes_one_that_the_strictest_server_accepts(
    history: list[Message], profile: Profile
) -> None:
    before = json.dumps(history)
    repaired = repair_messages(history, profile)
    assert complaints(repaired, profile) == []
    assert json.dumps(history) == before


@settings(max_examples=200, deadline=None)
@given(HISTORY, st.sampled_from(PROFILES))
def test_repairing_twice_changes_nothing(history: list[Message], profile: Profile) -> None:
    once = repair_messages(history, profile)
    assert repair_messages(once, profile) == once


@settings(max_examples=200, deadline=None)
@given(HISTORY, st.sampled_from(PROFILES), st.sampled_from(PROFILES))
def test_what_was_repaired_for_one_server_suits_another(
    history: list[Message], first: Profile, then: Profile
) -> None:
    assert complaints(repair_messages(repair_messages(history, first), then), then) == []


def conversation(steps: list[list[str]]) -> list[Message]:
    """Return a conversation in order: a question, then turns with these calls, then an answer."""
    messages: list[Message] = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    for names in steps:
        calls = [
            {
                "id": derived_id(f"{len(messages)}:{name}:{place}", ()),
                "type": "function",
                "function": {"name": name, "arguments": '{"x":1}'},
            }
            for place, name in enumerate(names)
        ]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "1"} for call in calls]
    return [*messages, {"role": "assistant", "content": "done"}]


STEPS = st.lists(st.lists(st.sampled_from(["f", "g"]), min_size=1, max_size=3), max_size=3)


@given(STEPS)
def test_a_history_in_order_stays_as_it_is(steps: list[list[str]]) -> None:
    messages = conversation(steps)
    for profile in (GENERIC, MISTRAL, OPENAI):
        assert repair_messages(messages, profile) == messages


@given(STEPS, st.integers(0, 20), st.sampled_from(PROFILES))
def test_an_interruption_at_any_point_spoils_nothing(
    steps: list[list[str]], cut: int, profile: Profile
) -> None:
    messages = conversation(steps)[: cut + 1]
    resumed = [*messages, {"role": "user", "content": "go on"}]
    repaired = repair_messages(resumed, profile)
    assert complaints(repaired, profile) == []
    assert "go on" in str(repaired[-1]["content"])
    assert call_ids(repaired) == call_ids(messages)


@given(STEPS, st.integers(0, 20), st.sampled_from(PROFILES))
def test_a_history_without_its_beginning_is_still_valid(
    steps: list[list[str]], cut: int, profile: Profile
) -> None:
    assert complaints(repair_messages(conversation(steps)[cut:], profile), profile) == []


def results(messages: list[Message]) -> list[str]:
    """Return the contents of all results."""
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_a_call_without_a_result_is_answered_with_what_is_known() -> None:
    repaired = repair_messages([called("aaaaaaaaa", "bbbbbbbbb"), result("bbbbbbbbb", "2")], GENERIC)
    assert results(repaired) == [NO_RESULT, "2"]
    assert json.loads(NO_RESULT)["error"]["reason"] == "tool_failed"


def test_a_late_result_goes_where_its_call_is() -> None:
    user: Message = {"role": "user", "content": "well?"}
    repaired = repair_messages([called("aaaaaaaaa"), user, result("aaaaaaaaa", "1")], GENERIC)
    assert repaired == [called("aaaaaaaaa"), result("aaaaaaaaa", "1"), user]


def test_a_result_without_a_call_and_a_second_result_are_dropped() -> None:
    history = [
        result("aaaaaaaaa", "0"),
        called("aaaaaaaaa"),
        result("aaaaaaaaa", "1"),
        result("aaaaaaaaa", "2"),
    ]
    assert repair_messages(history, GENERIC) == history[1:3]


def test_the_same_id_in_two_turns_is_distinguished_and_each_keeps_its_result() -> None:
    history = [called("call_1"), result("call_1", "one"), called("call_1"), result("call_1", "two")]
    repaired = repair_messages(history, GENERIC)
    assert results(repaired) == ["one", "two"]
    first, second = (message["tool_calls"][0]["id"] for message in repaired[::2])
    assert first != second
    assert [message["tool_call_id"] for message in repaired[1::2]] == [first, second]
    assert repair_messages(history, GENERIC) == repaired


def test_a_result_belongs_to_the_latest_call_with_its_id() -> None:
    history = [
        called("call_1"),
        {"role": "user", "content": "well?"},
        called("call_1"),
        result("call_1", "two"),
    ]
    assert results(repair_messages(history, GENERIC)) == [NO_RESULT, "two"]


def test_the_same_id_twice_in_one_turn_takes_results_in_their_order() -> None:
    repaired = repair_messages([called("x", "x"), result("x", "one"), result("x", "two")], GENERIC)
    assert results(repaired) == ["one", "two"]
    assert len(call_ids(repaired)) == 2


def test_a_signed_id_stays_except_where_it_cannot() -> None:
    history = [called("x__thought__sig"), result("x__thought__sig", "1")]
    assert repair_messages(history, GENERIC) == history
    assert call_ids(repair_messages(history, MISTRAL)) != {"x__thought__sig"}


def test_mistral_gets_the_assistant_between_a_result_and_the_user() -> None:
    history = [called("aaaaaaaaa"), result("aaaaaaaaa", "1"), {"role": "user", "content": "well?"}]
    assert [message["role"] for message in repair_messages(history, MISTRAL)] == [
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert repair_messages(history, GENERIC) == history


def test_system_messages_are_one_at_the_beginning_unless_the_server_takes_more() -> None:
    history: list[Message] = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
        {"role": "developer", "content": "be kind"},
    ]
    merged = [{"role": "system", "content": "be brief\n\nbe kind"}, {"role": "user", "content": "hi"}]
    assert repair_messages(history, GENERIC) == merged
    assert [message["role"] for message in repair_messages(history, OPENAI)] == ["system", "user", "system"]
    assert repair_messages(history, O1) == [{"role": "user", "content": "be brief\n\nbe kind\n\nhi"}]


def test_a_question_after_a_failed_turn_joins_the_one_before() -> None:
    history: list[Message] = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "still there?"},
    ]
    assert repair_messages(history, GENERIC) == [{"role": "user", "content": "hi\n\nstill there?"}]


def test_pictures_stay_where_the_server_takes_them_and_leave_a_word_elsewhere() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    history: list[Message] = [
        {"role": "user", "content": [{"type": "text", "text": "see"}, picture]},
        {"role": "user", "content": "what is it?"},
    ]
    words = {"type": "text", "text": "what is it?"}
    assert repair_messages(history, GENERIC)[0]["content"] == [
        {"type": "text", "text": "see"},
        picture,
        words,
    ]
    assert repair_messages(history, ZHIPU)[0]["content"] == "see\n[image_url left out]\n\nwhat is it?"


def test_deepseek_gets_its_reasoning_back_with_calls_and_only_there() -> None:
    history = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello", "reasoning_content": "hm"},
        {"role": "user", "content": "well?"},
        called("aaaaaaaaa", reasoning_content="let me see"),
        result("aaaaaaaaa", "1"),
        called("bbbbbbbbb"),
        result("bbbbbbbbb", "1"),
    ]
    sent = [message.get("reasoning_content") for message in repair_messages(history, DEEPSEEK)]
    assert sent == [None, None, None, "let me see", None, "", None]
    assert not [message for message in repair_messages(history, GENERIC) if "reasoning_content" in message]


@pytest.mark.parametrize("profile", [GENERIC, OPENAI])
def test_unknown_fields_of_a_call_go_back_where_they_are_taken(profile: Profile) -> None:
    message = called("aaaaaaaaa")
    message["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "c2ln"}}
    repaired = repair_messages([message, result("aaaaaaaaa", "1")], profile)
    assert ("extra_content" in repaired[0]["tool_calls"][0]) is profile.replay_extra


def test_a_result_that_is_no_text_becomes_its_json() -> None:
    assert results(repair_messages([called("aaaaaaaaa"), result("aaaaaaaaa", {"x": 1})], GENERIC)) == [
        '{"x":1}'
    ]


def test_ids_are_new_or_the_same_for_the_same_seed() -> None:
    assert derived_id("call_1:0", ()) == derived_id("call_1:0", ())
    assert derived_id("call_1:0", {derived_id("call_1:0", ())}) != derived_id("call_1:0", ())
    assert len({call_id() for _ in range(1000)}) == 1000
    assert call_id({"x"}).isalnum()
