"""What a request may ask of a run, apart from any run."""

from dataclasses import replace

from beckon_agent.calling.exchange import Outcome
from beckon_agent.calling.prepared import Prepared, prepare
from beckon_agent.runs import Agent, Limits, Options
from beckon_agent.wishes import calls_made, options_of_step, permitted, system_message
from tests.agent.calling.test_prepared import TOOLS, asked, reason

AGENT = Agent("a", "default", "You are a test.", Limits())
CALLS = prepare([asked("ping", "", "1"), asked("echo", '{"text": "x"}', "2"), asked("ping", "", "3")], TOOLS)


def reasons(calls: list[Prepared]) -> list[str]:
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
    assert reasons(permitted(CALLS, Options(), 0)) == ["", "", ""]
    assert reasons(permitted(CALLS, Options(allowed_tools=("echo",)), 0)) == ["denied", "", "denied"]
    assert reasons(permitted(CALLS, Options(allowed_tools=()), 0)) == ["denied"] * 3


def test_no_more_calls_are_made_than_the_request_allows() -> None:
    assert reasons(permitted(CALLS, Options(max_tool_calls=2), 0)) == ["", "", "denied"]
    assert reasons(permitted(CALLS, Options(max_tool_calls=2), 1)) == ["", "denied", "denied"]
    handed = [CALLS[0].handed_back(), *CALLS[1:]]
    assert reasons(permitted(handed, Options(max_tool_calls=2), 0)) == ["", "", ""]


def test_a_refusal_names_what_is_allowed() -> None:
    (refused, *_) = permitted(CALLS, Options(allowed_tools=("echo",)), 0)

    assert isinstance(refused.way, Outcome)
    assert "echo" in str(refused.way.result)


def test_results_are_what_counts_of_earlier_turns() -> None:
    assert calls_made([{"role": "assistant", "content": "x"}, {"role": "tool", "content": "y"}]) == 1
