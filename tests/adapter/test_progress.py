"""The progress of an MCP server's tools: events of the call for who waits for it."""

import asyncio
import sys

import orjson
import pytest

from beckon_adapter.mcp.caller import passed_on
from beckon_adapter.rule import NamedServer
from beckon_contract.cloudevents.events import CloudEvent
from beckon_tools import outbox
from tests.adapter.plain_api import adapting, egress_to
from tests.adapter.test_mcp_servers import SERVER, bridging, call_event, tool_of
from tests.patience import PATIENCE


def reported(events: list[CloudEvent]) -> list[object]:
    return [orjson.loads(event.data or b"null") for event in events]


@pytest.mark.parametrize("kind", ["http", "stdio"])
async def test_what_a_server_says_of_its_progress_is_reported(kind: str) -> None:
    events: list[CloudEvent] = []
    with outbox.taken_by(events.append):
        async with bridging(kind, "count") as adapter:
            assert await adapter.result(call_event({"to": 3})) == "progress requested"

    first, *_, last = reported(events) * 2
    assert isinstance(first, dict)
    assert isinstance(last, dict)
    assert first["total"] == 3
    assert (last["progress"], str(last["message"])[:6]) == (3, "3 of 3")
    event = events[-1]
    assert (event.type, event.extensions["causationid"]) == ("api.asked.progress", "call-1")
    assert (event.extensions["beckonstate"], event.extensions["beckonprogress"]) == ("progress", "token-1")


async def test_a_report_holds_no_secret_of_the_server() -> None:
    secret = NamedServer(
        name="tools",
        command=(sys.executable, str(SERVER)),
        env={"GIVEN": "hunter2hunter2"},
        secret=frozenset({"GIVEN"}),
    )
    events: list[CloudEvent] = []
    with outbox.taken_by(events.append):
        async with adapting(egress_to(), tool_of("tools", "count"), servers=[secret]) as adapter:
            await adapter.result(call_event({"to": 1}))

    assert [one["message"] for one in reported(events) if isinstance(one, dict)] == ["1 of 1, [hidden]"]


async def test_who_has_no_broker_does_not_ask_for_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(outbox.SINK, raising=False)
    async with bridging("stdio", "count") as adapter:
        assert await adapter.result(call_event({"to": 3})) == "no progress requested"


async def test_of_reports_during_another_the_first_three_are_sent_and_then_the_newest() -> None:
    sent: list[float] = []
    taken = asyncio.Event()

    async def slow(done: float, total: float | None, message: str) -> None:
        sent.append(done)
        await taken.wait()

    async with passed_on(slow) as received:
        for step in range(1, 8):
            await received(step, None, None)
            await asyncio.sleep(0)
        taken.set()

    assert sent == [1, 2, 3, 7]


async def test_reports_of_a_call_that_has_failed_are_dropped() -> None:
    async def never(done: float, total: float | None, message: str) -> None:
        await asyncio.Event().wait()

    async def fail() -> None:
        async with passed_on(never) as received:
            await received(1, None, None)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(fail(), PATIENCE)
