"""Approvals at `/ag-ui`: a run ends with interrupts, and a request with answers to them continues it."""

from typing import Any

import pytest

from tests.agent.agui.conftest import AguiClient, kinds, result_of, text_of
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH

pytestmark = pytest.mark.asyncio(loop_scope="module")

DANGER = asks_for(("test_danger", {}))


def interrupts_of(events: list[Any]) -> list[Any]:
    outcome = events[-1].outcome
    assert outcome.type == "interrupt", events[-1]
    found: list[Any] = outcome.interrupts
    return found


def resolved(interrupt: Any, *, approved: bool = True, **payload: object) -> dict[str, object]:
    return {
        "interruptId": interrupt.id,
        "status": "resolved",
        "payload": {"approved": approved, **payload},
    }


async def test_a_call_that_needs_an_approval_ends_the_run_with_an_interrupt(client: AguiClient) -> None:
    client.service.model.script[:] = [DANGER]

    events = await client.run()

    (interrupt,) = interrupts_of(events)
    (start,) = [event for event in events if event.type == "TOOL_CALL_START"]
    assert (interrupt.reason, interrupt.tool_call_id) == ("tool_call", start.tool_call_id)
    assert interrupt.response_schema["required"] == ["approved"]
    assert BENCH.calls == []


async def test_the_answer_continues_the_run_with_the_result_alone(client: AguiClient) -> None:
    client.service.model.script[:] = [
        asks_for(("test_echo", {"text": "x"}), ("test_danger", {})),
        says("It is done."),
    ]

    pending = await client.run()
    (interrupt,) = interrupts_of(pending)
    rest = await client.run(runId="r2", resume=[resolved(interrupt)])
    again = await client.run(runId="r2", resume=[resolved(interrupt)])

    assert BENCH.calls == ["x", "danger"]
    assert "TOOL_CALL_START" not in kinds(rest)
    assert result_of(rest).tool_call_id == interrupt.tool_call_id
    assert (rest[0].run_id, text_of(rest), rest[-1].outcome.type) == ("r2", "It is done.", "success")
    assert again == rest


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        ({"status": "resolved", "payload": {"approved": False, "reason": "too risky"}}, "too risky"),
        ({"status": "cancelled"}, "without a decision"),
    ],
)
async def test_a_denial_reaches_the_model_with_its_reason(
    client: AguiClient, entry: dict[str, object], cause: str
) -> None:
    client.service.model.script[:] = [DANGER, says("Then not.")]
    (interrupt,) = interrupts_of(await client.run())

    rest = await client.run(resume=[{"interruptId": interrupt.id, **entry}])

    assert (text_of(rest), BENCH.calls) == ("Then not.", [])
    assert cause in str(client.service.model.requests[-1].body["messages"][-1])


async def test_two_approvals_are_answered_in_one_request(client: AguiClient) -> None:
    client.service.model.script[:] = [asks_for(("test_danger", {}), ("test_danger", {})), says("One of two.")]
    first, second = interrupts_of(await client.run())

    half = await client.run(resume=[resolved(first)])
    whole = await client.run(resume=[resolved(first), resolved(second, approved=False)])

    assert (kinds(half)[-1], half[-1].code) == ("RUN_ERROR", "interrupts_missing")
    assert second.id in half[-1].message
    assert (text_of(whole), BENCH.calls) == ("One of two.", ["danger"])


async def test_a_second_interrupt_of_a_run_is_answered_like_the_first(client: AguiClient) -> None:
    client.service.model.script[:] = [DANGER, DANGER, says("Done twice.")]
    (first,) = interrupts_of(await client.run())

    (second,) = interrupts_of(await client.run(resume=[resolved(first)]))
    rest = await client.run(resume=[resolved(second)])

    assert first.id != second.id
    assert (text_of(rest), BENCH.calls) == ("Done twice.", ["danger", "danger"])


async def test_a_thread_with_open_interrupts_takes_answers_alone(client: AguiClient) -> None:
    client.service.model.script[:] = [DANGER, says("Elsewhere.")]
    (interrupt,) = interrupts_of(await client.run())

    refused = await client.run()
    elsewhere = await client.run(threadId="another")

    assert (kinds(refused), refused[-1].code) == (["RUN_STARTED", "RUN_ERROR"], "interrupts_pending")
    assert interrupt.id in refused[-1].message
    assert text_of(elsewhere) == "Elsewhere."


@pytest.mark.parametrize(
    ("path", "fields", "code"),
    [
        ("/ag-ui", {"threadId": "another"}, "interrupt_not_found"),
        ("/agents/other/ag-ui", {}, "interrupt_not_found"),
        ("/ag-ui", {"status": "resolved", "payload": None}, "invalid_resume"),
        ("/ag-ui", {"status": "resolved", "payload": {"approved": "yes"}}, "invalid_resume"),
        ("/ag-ui", {"status": "resolved", "payload": {"approved": True, "editedArgs": {}}}, "invalid_resume"),
        ("/ag-ui", {"interruptId": "mcpr_none"}, "interrupt_not_found"),
    ],
)
async def test_an_answer_that_does_not_fit_is_an_error_of_the_stream_and_decides_nothing(
    client: AguiClient, path: str, fields: dict[str, Any], code: str
) -> None:
    client.service.model.script[:] = [DANGER, says("It is done.")]
    (interrupt,) = interrupts_of(await client.run())
    thread = {name: value for name, value in fields.items() if name == "threadId"}
    entry = {**resolved(interrupt), **{name: value for name, value in fields.items() if name != "threadId"}}

    refused = await client.run(path, resume=[entry], **thread)

    assert (refused[-1].type, refused[-1].code) == ("RUN_ERROR", code)
    assert BENCH.calls == []
    assert text_of(await client.run(resume=[resolved(interrupt)])) == "It is done."
