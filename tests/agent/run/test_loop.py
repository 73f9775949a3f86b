"""Runs over a real event platform: calls, their results, what is shown, and what the next turn is sent."""

import json
from typing import Any

import pytest

from tests.agent.conftest import StartAgent
from tests.agent.running_agent import RunningAgent, user
from tests.agent.scripted_model import Script, asks_for, calls, chunk, fragment, says, streamed
from tests.agent.tools_for_tests import BENCH

pytestmark = pytest.mark.asyncio(loop_scope="module")


def results(agent: RunningAgent, request: int = 1) -> list[str]:
    """Return the tool results that the model was sent with a request."""
    return [m["content"] for m in agent.requests[request].body["messages"] if m["role"] == "tool"]


def call_text(arguments: str, name: str = "test_echo", finish: str = "tool_calls") -> Script:
    """Return an answer that calls a tool with exactly this text as arguments."""
    return streamed(calls(fragment(0, "call_1", name, arguments)), chunk(finish=finish))


async def test_a_call_goes_out_and_its_result_comes_back(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(("test_echo", {"text": "hi", "count": 2})), says("It said it.")) as agent:
        answer = await agent.ask()

        assert answer.text == "It said it."
        assert [event["result"] for event in answer.finished] == ["hihi"]
        assert results(agent) == ["hihi"]


async def test_results_stand_in_the_order_of_the_calls_and_events_in_the_order_they_ended(
    start_agent: StartAgent,
) -> None:
    slow, quick = ("test_nap", {"milliseconds": 300}), ("test_nap", {"milliseconds": 1})
    async with start_agent(asks_for(slow, quick), says("done")) as agent:
        answer = await agent.ask()

        assert [event["result"] for event in answer.finished] == ["slept 1", "slept 300"]
        assert results(agent) == ["slept 300", "slept 1"]


async def test_every_call_of_a_run_is_its_own_event_and_has_its_own_id(start_agent: StartAgent) -> None:
    twice = asks_for(("test_echo", {"text": "a"}), ("test_echo", {"text": "a"}))
    async with start_agent(twice, twice, says("done")) as agent:
        answer = await agent.ask()
        sent = agent.requests[2].body["messages"]

        # A tool that remembers events answers a repeated one without running again.
        assert BENCH.calls == ["a"] * 4
        ids = [call["id"] for message in sent for call in message.get("tool_calls") or ()]
        assert len(set(ids)) == 4
        assert {event["id"] for event in answer.finished} == set(ids)


async def test_texts_of_several_turns_are_set_apart(start_agent: StartAgent) -> None:
    speaking = streamed(
        chunk({"content": "Let me see."}),
        calls(fragment(0, "call_1", "test_echo", '{"text": "x"}')),
        chunk(finish="tool_calls"),
    )
    async with start_agent(speaking, speaking, says("Do", "ne.")) as agent:
        assert (await agent.ask()).text == "Let me see.\n\nLet me see.\n\nDone."


async def test_reasoning_is_separated_from_the_answer(start_agent: StartAgent) -> None:
    thinking = streamed(
        chunk({"reasoning_content": "hm, "}), chunk({"content": "Yes."}), chunk(finish="stop")
    )
    async with start_agent(thinking, thinking) as agent:
        answers = [await agent.ask(), await agent.ask_streaming()]

    assert [(answer.text, answer.reasoning) for answer in answers] == [("Yes.", "hm, ")] * 2


async def test_a_service_without_the_sdk_may_reply_in_plain_text(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(("test_plain", {})), says("ok")) as agent:
        await agent.ask()

        assert results(agent) == ["schöne Grüße"]


async def test_a_dead_tool_is_undeliverable(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(("test_dead", {})), says("It is dead.")) as agent:
        answer = await agent.ask()

        assert answer.error["reason"] == "undeliverable"
        assert json.loads(results(agent)[0])["error"]["reason"] == "undeliverable"


async def test_a_tool_that_is_slower_than_its_manifest_allows_times_out(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(("test_hurry", {})), says("Too slow.")) as agent:
        assert (await agent.ask()).error["reason"] == "timeout"


async def test_a_tool_that_refuses_is_reported_in_its_own_words(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(("test_fail", {"kind": "refuse"})), says("ok")) as agent:
        answer = await agent.ask()

    assert answer.error == {"reason": "tool_failed", "message": "this tool was asked to refuse"}


async def test_an_exception_of_a_tool_is_what_the_model_reads_without_the_trace(
    start_agent: StartAgent,
) -> None:
    async with start_agent(asks_for(("test_fail", {"kind": "crash"})), says("ok")) as agent:
        answer = await agent.ask()

        assert answer.error == {"reason": "tool_failed", "message": "RuntimeError: the paper is out"}
        assert "the paper is out" in results(agent)[0]
        assert "Traceback" not in results(agent)[0]


async def test_a_failed_call_does_not_take_the_others_with_it(start_agent: StartAgent) -> None:
    both = asks_for(("test_dead", {}), ("test_echo", {"text": "alive"}), ("test_nothing", {}))
    async with start_agent(both, says("ok")) as agent:
        answer = await agent.ask()

        assert sorted(event["failed"] for event in answer.finished) == [False, True, True]
        assert results(agent)[1] == "alive"


async def test_arguments_that_do_not_fit_never_reach_the_tool(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(("test_echo", {"text": "x", "count": "many"})), says("ok")) as agent:
        answer = await agent.ask()

    assert answer.error["reason"] == "invalid_arguments"
    assert "count" in answer.error["problems"][0]
    assert BENCH.calls == []


@pytest.mark.parametrize(
    ("written", "received"),
    [
        ("{'text': 'a', 'count': '2',}", ["a"]),
        ('{"text": "a"}{"text": "b"}', ["a", "b"]),
        ('"{\\"text\\": \\"a\\"}"', ["a"]),
    ],
)
async def test_arguments_that_can_be_repaired_are(
    start_agent: StartAgent, written: str, received: list[str]
) -> None:
    async with start_agent(call_text(written), says("ok")) as agent:
        await agent.ask()

        assert sorted(BENCH.calls) == received
        assert len(results(agent)) == len(received)


@pytest.mark.parametrize("written", ['{"text": "half of th', '{"text": "a"}{"te'])
async def test_half_a_call_is_not_made(start_agent: StartAgent, written: str) -> None:
    async with start_agent(call_text(written, finish="length"), says("ok")) as agent:
        answer = await agent.ask()

    assert answer.error["reason"] == "invalid_arguments"
    assert "cut off" in answer.error["message"]
    assert BENCH.calls == []


async def test_a_whole_call_before_the_token_limit_is_made(start_agent: StartAgent) -> None:
    async with start_agent(call_text('{"text": "a"}', finish="length"), says("ok")) as agent:
        assert [event["result"] for event in (await agent.ask()).finished] == ["a"]


async def test_an_invented_tool_gets_a_suggestion_and_is_not_guessed(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(("test_ecko", {"text": "x"})), says("ok")) as agent:
        answer = await agent.ask()

    assert answer.error["reason"] == "unknown_tool"
    assert "did you mean test_echo?" in answer.error["message"]
    assert BENCH.calls == []


async def test_a_tool_that_wants_approval_is_denied(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(("test_danger", {})), says("ok")) as agent:
        assert (await agent.ask()).error["reason"] == "denied"
    assert BENCH.calls == []


async def test_a_tool_called_directly_that_has_no_address_is_not_offered_and_the_refusal_says_why(
    start_agent: StartAgent,
) -> None:
    async with start_agent(asks_for(("test_direct", {})), says("ok")) as agent:
        answer = await agent.ask()
        offered = {tool["function"]["name"] for tool in agent.requests[0].body["tools"]}
        refused = (await agent.http.get("/tools")).json()["refused"]

    assert answer.error["reason"] == "unknown_tool"
    assert "test_echo" in offered
    assert "test_direct" not in offered
    (refusal,) = [one for one in refused if one["event_type"] == "test.direct"]
    assert refusal["reason"] == "AddressUnknown"
    assert "default/nowhere" in refusal["message"]


async def test_bytes_are_for_the_user_and_their_size_for_the_model(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(("test_picture", {})), says("ok")) as agent:
        answer = await agent.ask()
        (shown,) = results(agent)

    assert len(answer.finished[0]["result"]["data_base64"]) == 1600
    assert json.loads(shown) == {"media_type": "image/png", "note": "1200 bytes of data, left out here"}


async def test_the_model_sees_what_it_wrote_in_a_call_that_was_refused(start_agent: StartAgent) -> None:
    async with start_agent(asks_for(("test_nothing", {"q": [1, "x"]})), says("ok")) as agent:
        await agent.ask()
        (call,) = agent.requests[1].body["messages"][-2]["tool_calls"]

    assert json.loads(call["function"]["arguments"]) == {"q": [1, "x"]}


def check_like_the_strictest_provider(messages: list[dict[str, Any]]) -> None:
    """Assert what OpenAI, Mistral and vLLM ask of a conversation, all at once."""
    seen: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            assert isinstance(message["content"], str)
            continue
        assert not waiting, "a call has no result"
        for call in message.get("tool_calls") or ():
            assert call["id"] not in seen
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            seen.add(call["id"])
            waiting.append(call["id"])
        assert message.get("tool_calls") or message["content"].strip()
    assert not waiting
    assert messages[-1]["role"] in ("user", "tool")


def asking(call_id: str, arguments: str, name: str = "test_echo") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


@pytest.mark.parametrize(
    "damaged",
    [
        [asking("x", "{}")],
        [asking("x", "")],
        [asking("x", "[1, 2]")],
        [asking("x", '{"half')],
        [asking("x", "{}", name="no such tool!")],
        [{"role": "tool", "tool_call_id": "unknown", "content": "lost"}],
        [asking("x", "{}"), user("stop"), {"role": "tool", "tool_call_id": "x", "content": "late"}],
        [asking("x", "{}"), asking("x", "{}"), {"role": "tool", "tool_call_id": "x", "content": "one"}],
        [{"role": "assistant", "content": ""}],
        [{"role": "assistant", "content": None}, {"role": "function", "name": "f", "content": "old"}],
        [{"role": "developer", "content": "Be brief."}],
        [{"role": "tool", "content": "whose?"}],
    ],
)
async def test_no_damaged_turn_spoils_the_conversation(
    start_agent: StartAgent, damaged: list[dict[str, Any]]
) -> None:
    async with start_agent(asks_for(("test_echo", {"text": "x"})), says("fine")) as agent:
        answer = await agent.ask(user("go"), *damaged, user("and now?"))

        assert answer.text == "fine"
        for sent_request in agent.requests:
            check_like_the_strictest_provider(sent_request.body["messages"])


async def test_a_call_with_broken_arguments_leaves_a_valid_conversation(start_agent: StartAgent) -> None:
    broken = [
        call_text("not at all JSON {{{"),
        call_text("[1]"),
        call_text('{"text": 5, "text'),
        call_text("{}", name="no such tool!"),
    ]
    async with start_agent(*broken, says("sorry")) as agent:
        answer = await agent.ask()

        assert len(answer.finished) == len(broken)
        for sent_request in agent.requests:
            check_like_the_strictest_provider(sent_request.body["messages"])


async def test_an_answer_that_broke_off_is_never_reported_as_stopped(start_agent: StartAgent) -> None:
    broken = streamed(chunk({"content": "The answer is"}), done=False)
    async with start_agent(broken, broken) as agent:
        for answer in (await agent.ask(), await agent.ask_streaming()):
            assert (answer.text, answer.finish_reason) == ("The answer is", "length")
        assert await agent.metric("runs_total", agent="beckon", ending="incomplete") == 2


@pytest.mark.parametrize("arguments", ["", '{"text": "hi"', '{"text": "hi", "count": 1'])
async def test_a_call_that_broke_off_in_its_arguments_is_not_made(
    start_agent: StartAgent, arguments: str
) -> None:
    half = streamed(
        chunk({"content": "Let me see."}), calls(fragment(0, "c", "test_echo", arguments)), done=False
    )
    async with start_agent(half, says("It broke off.")) as agent:
        answer = await agent.ask()
        assert (answer.error["reason"], answer.text) == ("invalid_arguments", "Let me see.\n\nIt broke off.")
        assert "was cut off" in answer.error["message"]


async def test_a_long_integer_of_a_result_is_whole_for_model_and_client(start_agent: StartAgent) -> None:
    script = asks_for(("test_measure", {"digits": 30})), says("done")
    async with start_agent(*script, *script) as agent:
        for answer in (await agent.ask(), await agent.ask_streaming()):
            assert [event["result"] for event in answer.finished] == [{"long": int("1" * 30)}]
        for request in (1, 3):
            assert results(agent, request) == ['{"long":' + "1" * 30 + "}"]


async def test_a_long_integer_of_a_refused_call_is_shown_as_it_was_written(start_agent: StartAgent) -> None:
    sent_request = call_text('{"text": "hi", "count": ' + "1" * 30 + "}")
    async with start_agent(sent_request, says("done")) as agent:
        answer = await agent.ask()
        (call,) = agent.requests[1].body["messages"][-2]["tool_calls"]
    assert "does not fit into 64 bits" in str(answer.error)
    assert json.loads(call["function"]["arguments"])["count"] == int("1" * 30)


async def test_an_integer_for_an_argument_goes_out_as_an_integer(start_agent: StartAgent) -> None:
    async with start_agent(call_text('{"text": "hi", "count": 2.0}'), says("done")) as agent:
        answer = await agent.ask()
        (call,) = agent.requests[1].body["messages"][-2]["tool_calls"]
    assert [event["result"] for event in answer.finished] == ["hihi"]
    assert BENCH.data == [b'{"text":"hi","count":2}']
    assert call["function"]["arguments"] == '{"text":"hi","count":2}'
