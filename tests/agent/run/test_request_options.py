"""What a request may ask of a run, apart from any run."""

from dataclasses import replace

from beckon_agent.core.run_types import Agent, Limits, Options
from beckon_agent.run.turn import count_results, options_of_step, refuse_disallowed, system_message
from beckon_agent.tool_calls.outcome import CallOutcome
from beckon_agent.tool_calls.validation import PreparedCall, prepare_calls
from tests.agent.tool_calls.test_validation import TOOLS, reason, requested_call

AGENT = Agent("a", "default", "You are a test.", Limits())
CALLS = prepare_calls(
    [
        requested_call("ping", "", "1"),
        requested_call("echo", '{"text": "x"}', "2"),
        requested_call("ping", "", "3"),
    ],
    TOOLS,
)


def reasons(calls: list[PreparedCall]) -> list[str]:
    return [reason(call) for call in calls]


def test_instructions_stand_behind_the_prompt_in_one_message() -> None:
    assert system_message(AGENT, Options())["content"] == "You are a test."
    said = system_message(AGENT, Options(instructions="Be brief."))
    assert said == {"role": "system", "content": "You are a test.\n\nBe brief."}
    assert system_message(replace(AGENT, system_prompt=""), Options(instructions="x"))["content"] == "x"


def test_only_the_first_answer_can_be_forced_to_call() -> None:
    options = Options(first_choice="required", extra={"top_p": 0.5})

    assert options_of_step(options, 0).extra == {"top_p": 0.5, "tool_choice": "required"}
    assert options_of_step(options, 1).extra == {"top_p": 0.5}
    assert options_of_step(replace(options, use_tools=False), 0).extra == {"top_p": 0.5}


def test_calls_of_other_tools_than_the_allowed_ones_are_refused() -> None:
    assert reasons(refuse_disallowed(CALLS, Options(), 0)) == ["", "", ""]
    assert reasons(refuse_disallowed(CALLS, Options(allowed_tools=("echo",)), 0)) == ["denied", "", "denied"]
    assert reasons(refuse_disallowed(CALLS, Options(allowed_tools=()), 0)) == ["denied"] * 3


def test_no_more_calls_are_made_than_the_request_allows() -> None:
    assert reasons(refuse_disallowed(CALLS, Options(max_tool_calls=2), 0)) == ["", "", "denied"]
    assert reasons(refuse_disallowed(CALLS, Options(max_tool_calls=2), 1)) == ["", "denied", "denied"]
    handed = [CALLS[0].handed_back(), *CALLS[1:]]
    assert reasons(refuse_disallowed(handed, Options(max_tool_calls=2), 0)) == ["", "", ""]


def test_a_refusal_names_what_is_allowed() -> None:
    (refused, *_) = refuse_disallowed(CALLS, Options(allowed_tools=("echo",)), 0)

    assert isinstance(refused.action, CallOutcome)
    assert "echo" in str(refused.action.result)


def test_results_are_what_counts_of_earlier_turns() -> None:
    assert count_results([{"role": "assistant", "content": "x"}, {"role": "tool", "content": "y"}]) == 1


def test_without_parallel_calls_one_call_is_made_of_each_answer() -> None:
    assert reasons(refuse_disallowed(CALLS, Options(extra={"parallel_tool_calls": True}), 0)) == ["", "", ""]
    one = Options(extra={"parallel_tool_calls": False})
    assert reasons(refuse_disallowed(CALLS, one, 0)) == ["", "denied", "denied"]
