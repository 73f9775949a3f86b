"""The test double: what a tool's author sees of a call without any platform."""

import asyncio
from dataclasses import replace

from beckon_tools import Hints, Later, Progress, Ticket, ToolError, tool
from beckon_tools.settings import Settings
from beckon_tools.testing import Trial, call_tool

ORDERS = {1001: "packed"}
TICKETS: list[Ticket] = []


@tool(type="order.status")
def order_status(number: int) -> dict[str, object]:
    """Tell the status of an order."""
    if number not in ORDERS:
        raise ToolError(f"there is no order {number}")
    return {"number": number, "status": ORDERS[number]}


@tool(type="report")
async def report(year: int, ticket: Ticket, progress: Progress) -> Later:
    """Write a report, later."""
    await progress.report(1, message=f"queued {year}")
    TICKETS.append(ticket)
    return Later()


@tool(type="wait")
async def wait() -> None:
    """Wait for ever."""
    await asyncio.Event().wait()


@tool(type="crash")
async def crash() -> None:
    """Crash."""
    raise RuntimeError("the printer burns")


def test_a_result_is_what_the_model_gets() -> None:
    answer = call_tool(order_status, {"number": 1001})

    assert answer.result == {"number": 1001, "status": "packed"}
    assert (answer.failed, answer.status, answer.later) == (False, 200, False)
    assert answer.event is not None
    assert answer.event.type == "order.status.reply"


def test_a_tool_error_is_reported_as_the_model_gets_it() -> None:
    answer = call_tool(order_status, {"number": 9})

    assert (answer.reason, answer.message) == ("tool_failed", "there is no order 9")
    assert answer.failed


def test_bad_arguments_are_reported_by_name() -> None:
    answer = call_tool(order_status, {"nummer": 1001})

    assert (answer.status, answer.reason) == (200, "invalid_arguments")
    assert "number: Field required" in answer.message
    assert "nummer: unknown parameter" in answer.message


def test_an_exception_is_what_the_model_reads() -> None:
    answer = call_tool(crash)

    assert (answer.status, answer.reason) == (200, "tool_failed")
    assert answer.message == "RuntimeError: the printer burns"


def test_an_exception_of_an_idempotent_tool_is_what_a_broker_tries_again() -> None:
    answer = call_tool(replace(crash, hints=Hints(idempotent=True)))

    assert (answer.status, answer.reason) == (500, "tool-crashed")
    assert answer.message == "RuntimeError: the printer burns"


async def test_a_call_that_comes_twice_runs_once() -> None:
    trial = Trial(order_status)

    first, again = [await trial.call({"number": 1001}, id="same") for _ in range(2)]
    other = await trial.call({"number": 1001})

    assert first.result == again.result == other.result
    assert trial.runs == 2


async def test_a_call_that_has_expired_is_not_run_and_one_that_expires_is_stopped() -> None:
    trial = Trial(wait)

    expired = await trial.call(expires_in=-1)
    assert (expired.reason, trial.runs) == ("timeout", 0)
    stopped = await trial.call(expires_in=0.1)
    assert (stopped.reason, trial.runs) == ("timeout", 1)


async def test_progress_and_an_answer_that_comes_later_are_seen() -> None:
    with Trial(report) as trial:
        taken = await trial.call({"year": 2026}, id="long")
        assert (taken.later, taken.failed) == (True, False)
        assert trial.reports == [{"progress": 1, "message": "queued 2026"}]

        await Ticket.read(TICKETS[-1].text()).answer({"pages": 42})

    assert trial.answers["long"].result == {"pages": 42}


async def test_settings_can_be_those_of_the_service() -> None:
    trial = Trial(order_status, Settings.model_construct(max_event_bytes=48_581))

    assert "above the limit of 5" in (await trial.call({"number": 1001})).message
