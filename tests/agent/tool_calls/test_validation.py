"""The inspection of calls, apart from any run."""

import json
from typing import Any

import pytest

from beckon_agent.core.model_types import ToolCall
from beckon_agent.tool_calls.outcome import CallOutcome
from beckon_agent.tool_calls.validation import NeedsApproval, PreparedCall, prepare_calls
from beckon_contract.resources.tools import CallOrigin, Tool

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


def a_tool(name: str, parameters: dict[str, Any] = TEXT, **more: Any) -> Tool:
    return Tool(name, "default", name, name, None, name, parameters, "spec.schemaData", **more)


TOOLS = {
    "echo": a_tool("echo"),
    "ping": a_tool("ping", NOTHING),
    "danger": a_tool("danger", NOTHING, requires_approval=True),
}


def requested_call(name: str, arguments: str, call_id: str = "aaaaaaaaa", **extra: Any) -> ToolCall:
    return ToolCall(call_id, name, arguments, extra)


def reason(call: PreparedCall) -> str:
    """Return why a call is refused, empty where it is not."""
    if not isinstance(call.action, CallOutcome):
        return ""
    assert call.action.failed
    assert isinstance(call.action.result, dict)
    return str(call.action.result["error"]["reason"])


@pytest.mark.parametrize("arguments", ["", "{}", "null", "  "])
def test_no_arguments_are_none(arguments: str) -> None:
    (call,) = prepare_calls([requested_call("ping", arguments)], TOOLS)

    assert (call.arguments, reason(call)) == ({}, "")


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("echo", '{"text": "x"}', ""),
        ("echo", "{}", "invalid_arguments"),
        ("echo", "[1]", "invalid_arguments"),
        ("echo", "certainly!", "invalid_arguments"),
        ("Echo", '{"text": "x"}', "unknown_tool"),
        ("", "{}", "unknown_tool"),
        ("x" * 100_000, "{}", "unknown_tool"),
    ],
)
def test_a_call_is_made_or_refused_with_its_reason(name: str, arguments: str, why: str) -> None:
    (call,) = prepare_calls([requested_call(name, arguments)], TOOLS)

    assert reason(call) == why


def test_a_call_of_a_tool_that_wants_approval_waits_for_it() -> None:
    (call,) = prepare_calls([requested_call("danger", "{}")], TOOLS)

    assert call.action == NeedsApproval(TOOLS["danger"])


def test_a_name_that_the_model_made_up_is_not_repeated_at_length() -> None:
    (call,) = prepare_calls([requested_call("x" * 100_000, "{}")], TOOLS)

    assert isinstance(call.action, CallOutcome)
    assert len(str(call.action.result)) < 300


def test_joined_objects_become_calls_with_ids_of_their_own() -> None:
    found = prepare_calls([requested_call("echo", '{"text": "a"}\n{"text": "b"}{"text": "c"}')], TOOLS)

    assert [call.arguments for call in found] == [{"text": "a"}, {"text": "b"}, {"text": "c"}]
    assert found[0].tool_call.id == "aaaaaaaaa"
    assert len({call.tool_call.id for call in found}) == 3


def test_objects_of_which_one_does_not_fit_are_not_made_into_calls() -> None:
    (call,) = prepare_calls([requested_call("echo", '{"text": "a"}{"wrong": "b"}')], TOOLS)

    assert reason(call) == "invalid_arguments"


@pytest.mark.parametrize(
    ("arguments", "whole"),
    [
        ('{"text": "a"}', True),
        ("", False),
        ('{"text": "a"', False),
        ('{"text": "a"}{"te', False),
        ('"{\\"text\\"', False),
    ],
)
def test_only_a_whole_object_counts_at_the_token_limit(arguments: str, whole: bool) -> None:
    (call,) = prepare_calls([requested_call("echo", arguments)], TOOLS, cut_off=True)

    assert reason(call) == ("" if whole else "invalid_arguments")


def test_only_the_last_call_can_have_been_cut_off() -> None:
    first, last = prepare_calls(
        [requested_call("echo", "{'text': 'a'}"), requested_call("echo", "{'text': 'b'}")],
        TOOLS,
        cut_off=True,
    )

    assert (reason(first), reason(last)) == ("", "invalid_arguments")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"q": 1}', {"q": 1}),
        ("[1]", {}),
        ("{oops", {}),
        ("", {}),
        ('{"q": "\\ud800"}', {}),
    ],
)
def test_a_refused_call_is_reported_with_the_object_that_the_model_wrote(
    arguments: str, shown: dict[str, Any]
) -> None:
    (call,) = prepare_calls([requested_call("nothing", arguments)], TOOLS)

    assert json.loads(call.as_message_part()["function"]["arguments"]) == shown


def test_what_a_provider_wants_back_with_a_call_goes_back() -> None:
    signature = {"google": {"thought_signature": "sig"}}
    (call,) = prepare_calls([requested_call("ping", "{}", extra_content=signature)], TOOLS)

    assert call.as_message_part() == {
        "extra_content": signature,
        "id": "aaaaaaaaa",
        "type": "function",
        "function": {"name": "ping", "arguments": "{}"},
    }


@pytest.mark.parametrize(
    ("origin", "may_wait", "tool", "expected"),
    [
        ("api", True, a_tool("ping", NOTHING, text_calls="Refuse"), "made"),
        ("dialect", True, a_tool("ping", NOTHING), "made"),
        ("recovered", True, a_tool("ping", NOTHING), "approval"),
        ("recovered", False, a_tool("ping", NOTHING), "made"),
        ("recovered", True, a_tool("ping", NOTHING, read_only=True), "made"),
        ("recovered", True, a_tool("ping", NOTHING, read_only=True, text_calls="Approve"), "approval"),
        ("dialect", False, a_tool("ping", NOTHING, text_calls="Approve"), "approval"),
        ("dialect", True, a_tool("ping", NOTHING, text_calls="Refuse"), "denied"),
        ("recovered", False, a_tool("ping", NOTHING, text_calls="Refuse"), "denied"),
    ],
)
def test_a_call_read_from_text_is_made_approved_or_refused_by_its_origin(
    origin: CallOrigin, may_wait: bool, tool: Tool, expected: str
) -> None:
    written = ToolCall("aaaaaaaaa", "ping", "{}", origin=origin)

    (call,) = (one.checked_by_origin(may_wait=may_wait) for one in prepare_calls([written], {"ping": tool}))

    found = "approval" if isinstance(call.action, NeedsApproval) else reason(call) or "made"
    assert found == expected
