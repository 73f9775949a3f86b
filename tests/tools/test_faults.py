"""A function that raises: its fault is a result, and runs again only where that does no harm."""

import asyncio
import logging

import pytest

from beckon_tools import Hints, OutcomeUnknown, Retry, tool
from beckon_tools.calls import shorten_message
from beckon_tools.declaration import AnyTool
from tests.tools.serving import call, calling

TEXT = "the printer burns"


@tool(type="crash")
async def crash() -> str:
    """Fail unexpectedly."""
    raise RuntimeError(TEXT)


async def test_an_exception_is_a_result_with_its_text_and_the_trace_goes_to_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with calling(crash) as caller:
        with caplog.at_level(logging.ERROR):
            reply = await caller.reply(call("crash"))
    assert reply.extensions["replyid"] == "token-1"
    assert reply.json() == {"error": {"reason": "tool_failed", "message": f"RuntimeError: {TEXT}"}}
    assert "Traceback" in caplog.text
    assert "call-1" in caplog.text


class _Unprintable(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError(), "ValueError"),
        (KeyError("colour"), "KeyError: 'colour'"),
        (TimeoutError("slow"), "TimeoutError: slow"),
        (
            OSError("cannot reach postgresql://me:pass@db/x"),
            "OSError: cannot reach postgresql://[hidden]@db/x",
        ),
        (ExceptionGroup("two", [ValueError("a"), TypeError("b")]), "ValueError: a; TypeError: b"),
        (_Unprintable(), "_Unprintable"),
        (SystemExit(2), "SystemExit: 2"),
        (asyncio.CancelledError(), "CancelledError"),
        (ValueError("x" * 9000), "ValueError: " + "x" * 3987 + "…"),
        (OutcomeUnknown("the bank did not answer"), "the bank did not answer"),
    ],
    ids=lambda value: (
        "" if isinstance(value, BaseException) else value[:50].encode("ascii", "replace").decode()
    ),
)
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "async"])
async def test_whatever_a_function_raises_it_runs_once(
    error: BaseException, message: str, plain: bool
) -> None:
    runs = []

    def charge() -> None:
        """Charge the card."""
        runs.append(1)
        raise error

    async def charge_async() -> None:
        """Charge the card."""
        charge()

    declared: AnyTool = tool(type="charge")(charge if plain else charge_async)
    async with calling(declared) as caller:
        answers = [await caller.result(call("charge", {})) for _ in range(6)]

    reason = "outcome_unknown" if isinstance(error, OutcomeUnknown) else "tool_failed"
    assert answers == [{"error": {"reason": reason, "message": message}}] * 6
    assert len(runs) == 1


def test_a_text_that_cannot_be_written_as_json_is_written_as_far_as_it_can() -> None:
    assert shorten_message("no half \ud83d") == "no half ?"


async def test_an_exception_of_an_idempotent_tool_is_for_the_broker_to_try_again() -> None:
    tries = []

    @tool(type="lookup", hints=Hints(idempotent=True))
    async def lookup() -> str:
        """Look something up."""
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("the index is being rebuilt")
        return "found"

    async with calling(lookup) as caller:
        first = await caller.post(call("lookup", {}))
        second = await caller.result(call("lookup", {}))

    assert (first.status_code, second) == (500, "found")
    assert first.headers["content-type"] == "application/problem+json"
    assert first.json()["detail"] == "RuntimeError: the index is being rebuilt"
    assert len(first.content) <= 512


@pytest.mark.parametrize(("after", "header"), [(7, "7"), (None, None)])
async def test_a_tool_that_cannot_run_now_has_its_call_delivered_again(
    after: int | None, header: str | None
) -> None:
    tries = []

    @tool(type="wait")
    async def wait() -> str:
        """Answer the second time."""
        tries.append(1)
        if len(tries) == 1:
            raise Retry("the stock is being counted", after=after)
        return "done"

    async with calling(wait) as caller:
        first = await caller.post(call("wait", {}))
        second = await caller.result(call("wait", {}))

    assert (first.status_code, first.headers.get("retry-after"), second) == (503, header, "done")
    assert first.json()["detail"] == "the stock is being counted"
