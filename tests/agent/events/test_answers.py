"""An event starts a run, and the answer is a reply event, also if no caller waits for it."""

from collections.abc import AsyncGenerator
from dataclasses import replace

import orjson
import pytest

from beckon_agent.api.events.request import EventRules
from beckon_agent.core.records import StoredRun
from beckon_agent.core.run_events import AnswerDropped, RunEvent, RunFinished, TextDelta
from beckon_agent.core.run_types import Limits
from beckon_agent.durable.base import Ask
from beckon_runtime.tracing import carried
from tests.agent.events.answering_agent import SOURCE, Setup, answering_agent, asking, event, problem
from tests.agent.events.memory_engine import MemoryEngine, doing
from tests.agent.scripted_model import asks_for, calls, chunk, fragment, refuses, says, streamed

TRACE = "00-cfd89e9022d64be63e82723ed48bf9b2-99482c12389c6531-01"


@pytest.mark.parametrize("structured", [False, True])
async def test_the_answer_to_a_question_is_a_reply_event_in_binary_mode(structured: bool) -> None:
    sent = replace(asking(traceparent=TRACE, knativebrokerttl=7), subject="the moon")
    async with answering_agent(says("Because", " of cheese.")) as agent:
        reply = await agent.reply(sent, structured=structured)

        assert reply.json() == {"answer": "Because of cheese."}
        assert (reply.type, reply.source, reply.subject) == ("ask.researcher.reply", SOURCE, "the moon")
        assert reply.extensions["replyid"] == "token-1"
        assert reply.extensions["causationid"] == "e1"
        assert reply.extensions["traceparent"] == TRACE
        assert str(reply.extensions["knativebrokerttl"]) == "7"
        assert "correlationid" not in reply.extensions
        assert agent.requests[0].body["messages"] == [
            {"role": "system", "content": "You are a test."},
            {"role": "user", "content": "Why?"},
        ]


async def test_an_agent_is_named_by_the_path_and_an_unknown_one_is_refused() -> None:
    async with answering_agent(says("Yes.")) as agent:
        known = await agent.send(asking(), "/events/researcher")
        unknown = await agent.send(asking(), "/events/team-a/unknown")

        assert known.status_code == 200
        assert "there is no agent 'team-a/unknown'" in problem(unknown, 404)
        assert "researcher" in unknown.json()["detail"]


async def test_an_event_that_no_one_waits_for_is_answered_for_who_listens() -> None:
    async with answering_agent(says("The shop sold a lamp.")) as agent:
        reply = await agent.reply(event({"lamp": 1}))

        assert reply.json() == {"answer": "The shop sold a lamp."}
        assert "replyid" not in reply.extensions
        shown = agent.requests[0].body["messages"][1]["content"]
        assert shown.startswith(
            'An event has come.\ntype: ask.researcher\nsource: /front\ndata:\n{"lamp":1}\n'
        )
        assert "No client waits for an answer." in shown


@pytest.mark.parametrize("answer", ["NO_REPLY", " NO_REPLY\n"])
async def test_an_agent_that_has_nothing_to_say_gives_no_reply(answer: str) -> None:
    async with answering_agent(says(answer)) as agent:
        response = await agent.send(event({"lamp": 1}))

        assert (response.status_code, response.content) == (202, b"")


async def test_who_waits_gets_an_answer_also_where_it_says_nothing() -> None:
    async with answering_agent(says("")) as agent:
        assert (await agent.reply(asking())).json() == {"answer": ""}


async def test_an_answer_that_broke_off_says_so_also_where_it_is_a_json_object() -> None:
    for text in ("Because", '{"colour": "green"}'):
        async with answering_agent(streamed(chunk({"content": text}), done=False)) as agent:
            assert (await agent.reply(asking())).json() == {"answer": text, "ending": "incomplete"}


async def test_an_answer_that_is_a_json_object_is_the_data_of_the_reply() -> None:
    async with answering_agent(says('{"colour": "green",', ' "n": 1.0}')) as agent:
        reply = await agent.reply(asking())

        assert reply.data == b'{"colour": "green", "n": 1.0}'


async def test_only_what_the_model_says_after_its_last_call_is_the_answer() -> None:
    call = calls(fragment(0, "call_0", "nothing_of_the_kind", "{}"))
    looks = streamed(chunk({"content": "Let me look."}), call, chunk(finish="tool_calls"))
    async with answering_agent(looks, says("There is no such tool."), looks, says("")) as agent:
        assert (await agent.reply(asking())).json() == {"answer": "There is no such tool."}
        # Where it says nothing after it, what it said before is better than nothing.
        assert (await agent.reply(asking(name="e2"))).json() == {"answer": "Let me look."}


async def test_an_answer_that_a_limit_ended_says_so() -> None:
    setup = Setup(limits=Limits(steps=1))
    async with answering_agent(asks_for(("x", {})), setup=setup) as agent:
        data = orjson.loads((await agent.reply(asking())).data or b"")

        assert data["ending"] == "step_limit"
        assert "has reached its limit of requests to the model" in data["answer"]


async def test_the_names_of_the_correlation_attributes_are_settings() -> None:
    setup = Setup(rules=EventRules(correlation_attribute="id", reply_attribute="responseid"))
    async with answering_agent(says("Yes."), setup=setup) as agent:
        reply = await agent.reply(event({"question": "Yes?"}))

        assert reply.extensions["responseid"] == "e1"


async def test_a_failed_run_is_shown_to_the_one_who_waits_as_data() -> None:
    async with answering_agent(refuses(400, "no such thing")) as agent:
        reply = await agent.reply(asking())

        error = orjson.loads(reply.data or b"")["error"]
        assert error["reason"] == "tool_failed"
        assert "no such thing" in error["message"]
        assert reply.extensions["replyid"] == "token-1"


async def test_a_failed_run_that_no_one_waits_for_becomes_a_dead_letter_at_once() -> None:
    async with answering_agent(refuses(400, "x" * 5000)) as agent:
        response = await agent.send(event({"lamp": 1}))

        assert problem(response, 424).startswith("the agent failed: ")


async def dropped(_: Ask) -> AsyncGenerator[RunEvent]:
    """A run whose process died in the middle of an answer, and which went on elsewhere."""
    yield TextDelta("It is half past")
    yield AnswerDropped()
    yield TextDelta("It is noon.")
    yield RunFinished("stop", None, ())


async def test_an_answer_that_broke_off_and_was_requested_again_is_reported_once() -> None:
    async with answering_agent(setup=Setup(engine=doing(dropped))) as agent:
        assert (await agent.reply(asking())).json() == {"answer": "It is noon."}


@pytest.mark.parametrize(
    ("error", "said"),
    [(None, "the run is cancelled"), ({"code": "agent_gone", "message": "no such agent"}, "no such agent")],
)
async def test_a_run_that_was_ended_from_outside_is_reported_as_failed(
    error: dict[str, str] | None, said: str
) -> None:
    class Ended(MemoryEngine):
        async def get(self, run_id: str) -> StoredRun | None:
            run = await super().get(run_id)
            return run and replace(run, status="cancelled", error=error)

        async def follow(self, run_id: str, *, wait: bool = False) -> AsyncGenerator[tuple[int, RunEvent]]:
            yield 1, TextDelta("half")

    async with answering_agent(setup=Setup(engine=lambda service: Ended(service, dropped))) as agent:
        reply = await agent.reply(asking())

        assert orjson.loads(reply.data or b"")["error"]["message"] == f"the agent failed: {said}"


async def tracing(_: Ask) -> AsyncGenerator[RunEvent]:
    """A run that says in which trace it is."""
    yield TextDelta(carried().get("traceparent", "none"))
    yield RunFinished("stop", None, ())


OTHER_TRACE = TRACE.replace("cfd89e90", "aaaaaaaa")


@pytest.mark.parametrize(("headers", "joined"), [({}, True), ({"traceparent": OTHER_TRACE}, False)])
async def test_a_run_is_in_the_trace_of_its_event_unless_the_request_has_one(
    headers: dict[str, str], joined: bool
) -> None:
    async with answering_agent(setup=Setup(engine=doing(tracing))) as agent:
        response = await agent.send(asking(traceparent=TRACE), headers=headers)

        # A request's own trace is taken up before any face is asked.
        assert (TRACE[3:35] in response.json()["answer"]) is joined
