"""Calls that a person must allow: the response ends with the question, and the answer begins the next one."""

import pytest

from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import Event, kinds, said
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH

pytestmark = pytest.mark.asyncio(loop_scope="module")

DANGER = asks_for(("test_danger", {}))
BOTH = asks_for(("test_echo", {"text": "x"}), ("test_danger", {}))


def answer_to(response: Event, *, approve: bool = True, **more: object) -> list[Event]:
    return [
        {"type": "mcp_approval_response", "approval_request_id": item["id"], "approve": approve, **more}
        for item in response["output"]
        if item["type"] == "mcp_approval_request"
    ]


async def test_a_call_that_needs_approval_ends_the_response_with_a_question(start_face: StartFace) -> None:
    async with start_face(BOTH, BOTH) as face:
        whole = await face.ask()
        events = await face.stream()

    assert [item["type"] for item in whole["output"]] == ["mcp_call", "mcp_approval_request"]
    echo, question = whole["output"]
    assert (echo["status"], echo["output"]) == ("completed", "x")
    assert (question["server_label"], question["name"], question["arguments"]) == (
        "cluster",
        "test_danger",
        "{}",
    )
    assert whole["status"] == "completed"
    assert kinds(events)[-1] == "completed"
    assert BENCH.calls == ["x", "x"]


async def test_an_approval_resumes_exactly_that_call_in_a_new_response(start_face: StartFace) -> None:
    async with start_face(BOTH, says("Done.")) as face:
        pending = await face.ask()
        done = await face.ask(answer_to(pending), previous_response_id=pending["id"])
        stored = [await face.get(each["id"]) for each in (pending, done)]

    assert BENCH.calls == ["x", "danger"]
    call, message = done["output"]
    assert (call["type"], call["name"], call["output"]) == ("mcp_call", "test_danger", "done")
    assert call["approval_request_id"] == pending["output"][1]["id"]
    assert message["content"][0]["text"] == "Done."
    assert done["id"] != pending["id"]
    assert done["previous_response_id"] == pending["id"]
    assert stored == [pending, done]


async def test_the_response_after_an_approval_streams_like_any_other(start_face: StartFace) -> None:
    async with start_face(DANGER, says("Done.")) as face:
        pending = (await face.stream())[-1]["response"]
        events = await face.stream(answer_to(pending), previous_response_id=pending["id"])
        response_id = events[-1]["response"]["id"]
        again = await face.join(response_id, starting_after=3)

    assert kinds(events)[:3] == ["created", "in_progress", "output_item.added"]
    assert kinds(events)[-1] == "completed"
    assert events[0]["sequence_number"] == 0
    assert said(events[-1]["response"]) == "Done."
    assert again == events[4:]


async def test_a_denied_call_is_not_made_and_the_model_sees_it(start_face: StartFace) -> None:
    async with start_face(DANGER, says("Then not.")) as face:
        pending = await face.ask()
        done = await face.ask(
            answer_to(pending, approve=False, reason="too risky"), previous_response_id=pending["id"]
        )
        shown = face.agent.requests[-1].body["messages"][-1]["content"]

    assert BENCH.calls == []
    assert done["output"][0]["status"] == "failed"
    assert "too risky" in shown
    assert said(done) == "Then not."


async def test_an_answer_needs_no_previous_response(start_face: StartFace) -> None:
    async with start_face(DANGER, says("Done."), says("More.")) as face:
        pending = await face.ask()
        history = [{"role": "user", "content": "go"}, *pending["output"], *answer_to(pending)]
        done = await face.ask(history)
        more = await face.ask([*history, *done["output"], {"role": "user", "content": "more"}], store=False)

    assert BENCH.calls == ["danger"]
    assert said(done) == "Done."
    assert said(more) == "More."


async def test_several_questions_are_answered_at_once(start_face: StartFace) -> None:
    two = asks_for(("test_danger", {}), ("test_danger", {}))
    async with start_face(two, says("Done.")) as face:
        pending = await face.ask()
        first, second = answer_to(pending)
        one_only = await face.post([first], previous_response_id=pending["id"])
        assert BENCH.calls == []
        done = await face.ask([first, {**second, "approve": False}])

    assert one_only.status_code == 400
    assert one_only.json()["error"]["code"] == "approvals_missing"
    assert second["approval_request_id"] in one_only.json()["error"]["message"]
    assert BENCH.calls == ["danger"]
    assert [item.get("status") for item in done["output"]] == ["completed", "failed", "completed"]


async def test_questions_may_follow_one_another(start_face: StartFace) -> None:
    async with start_face(DANGER, DANGER, says("Done.")) as face:
        first = await face.ask()
        second = await face.ask(answer_to(first))
        third = await face.ask(answer_to(second))
        stored = [await face.get(each["id"]) for each in (first, second, third)]

    assert [item["type"] for item in second["output"]] == ["mcp_call", "mcp_approval_request"]
    assert said(third) == "Done."
    assert len({each["id"] for each in (first, second, third)}) == 3
    assert third["previous_response_id"] == second["id"]
    assert stored == [first, second, third]
    assert BENCH.calls == ["danger", "danger"]


async def test_the_same_answer_again_shows_the_same_and_another_is_refused(start_face: StartFace) -> None:
    async with start_face(DANGER, says("Done.")) as face:
        pending = await face.ask()
        done = await face.ask(answer_to(pending))
        again = await face.ask(answer_to(pending))
        other = await face.post(answer_to(pending, approve=False))

    assert again == done
    assert other.status_code == 409
    assert other.json()["error"]["code"] == "already_decided"
    assert BENCH.calls == ["danger"]


async def test_a_decision_from_elsewhere_is_seen_by_the_client(start_face: StartFace) -> None:
    async with start_face(DANGER, says("Done.")) as face:
        pending = await face.ask()
        event_id = pending["output"][0]["id"].removeprefix("mcpr_")
        assert await face.engine.decide_call(event_id, "approved", by="a person on the command line")
        done = await face.ask(answer_to(pending))

    assert said(done) == "Done."


async def test_a_response_that_waits_cannot_be_gone_on_from(start_face: StartFace) -> None:
    async with start_face(DANGER) as face:
        pending = await face.ask()
        answer = await face.post("never mind", previous_response_id=pending["id"])

    assert answer.status_code == 409
    assert "mcp_approval_response" in answer.json()["error"]["message"]


async def test_a_response_that_is_cancelled_while_it_waits_is_cancelled(start_face: StartFace) -> None:
    async with start_face(DANGER) as face:
        pending = await face.ask()
        cancelled = await face.http.post(f"/v1/responses/{pending['id']}/cancel")
        stored = await face.get(pending["id"])
        late = await face.post(answer_to(pending))

    assert cancelled.json()["status"] == stored["status"] == "cancelled"
    assert late.status_code == 409
    assert BENCH.calls == []


@pytest.mark.parametrize("named", ["mcpr_nothing", "nothing", "mcpr_", ""])
async def test_an_answer_to_no_question_is_refused(start_face: StartFace, named: str) -> None:
    answer = {"type": "mcp_approval_response", "approval_request_id": named, "approve": True}
    async with start_face() as face:
        refused = await face.post([answer])

    assert refused.status_code == 404
    assert refused.json()["error"]["code"] == "approval_request_not_found"


async def test_no_one_else_can_answer(start_face: StartFace) -> None:
    async with start_face(DANGER) as face:
        pending = await face.ask()
        answer = await face.http.post(
            "/v1/responses", json={"input": answer_to(pending)}, headers={"x-owner": "mallory"}
        )

    assert answer.status_code == 404
    assert BENCH.calls == []
