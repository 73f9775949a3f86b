"""Answers that come later: the call is taken, and its ticket brings the answer to the Broker."""

from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import pytest
import pytest_asyncio

from beckon_contract.cloudevents.events import CloudEvent, from_http
from beckon_tools import DeclarationError, Later, NotSent, Ticket, tool
from beckon_tools.signature import read_signature
from tests.serving import served
from tests.tools.serving import call, calling

TICKETS: list[Ticket] = []
CLOSED = "http://127.0.0.1:9"
AN_EVENT = '{"specversion": "1.0", "id": "1", "source": "/a", "type": "b"}'


@tool(type="test.report")
async def report(year: int, ticket: Ticket) -> Later | int:
    """Report on a year; what is long past is known at once."""
    if year < 2000:
        return year
    TICKETS.append(ticket)
    return Later()


class Broker:
    """Takes events as a Broker does, and answers with the status that is set."""

    def __init__(self) -> None:
        self.events: list[CloudEvent] = []
        self.status = 202
        self.headers: list[tuple[bytes, bytes]] = []
        self.url = ""

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = (await receive())["body"]
        self.events.append(from_http(scope["headers"], body))
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": b""})


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    running = Broker()
    async with served(running) as url:
        running.url = url
        yield running


async def taken(**extensions: str) -> tuple[CloudEvent, Ticket]:
    """Call the tool, which takes the call; return its reply and the ticket."""
    TICKETS.clear()
    async with calling(report) as caller:
        reply = await caller.reply(call("test.report", {"year": 2026}, **extensions))
    return reply, TICKETS[0]


async def test_a_call_that_is_answered_later_is_taken_with_a_reply_that_says_so() -> None:
    reply, ticket = await taken()

    assert reply.extensions["beckonstate"] == "accepted"
    assert (reply.extensions["replyid"], reply.extensions["causationid"]) == ("token-1", "call-1")
    assert reply.data in (None, b"")
    assert ticket.call == "call-1"


async def test_a_call_is_taken_once_and_its_repetition_is_given_the_same() -> None:
    TICKETS.clear()
    async with calling(report) as caller:
        replies = [await caller.reply(call("test.report", {"year": 2026})) for _ in range(2)]

    assert [reply.extensions["beckonstate"] for reply in replies] == ["accepted"] * 2
    assert len(TICKETS) == 1


async def test_a_tool_that_may_answer_later_may_answer_at_once() -> None:
    async with calling(report) as caller:
        reply = await caller.reply(call("test.report", {"year": 1999}))

    assert reply.json() == 1999
    assert "beckonstate" not in reply.extensions


async def test_a_ticket_brings_the_answer_to_the_broker_also_after_a_restart(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ticket = await taken(beckondepth="2")
    written = ticket.text()
    monkeypatch.setenv("K_SINK", broker.url)

    await Ticket.read(written).answer({"pages": 42})

    (sent,) = broker.events
    assert sent.json() == {"pages": 42}
    assert (sent.type, sent.source) == ("test.report.reply", "/beckon/tools/test.report")
    assert (sent.extensions["replyid"], sent.extensions["causationid"]) == ("token-1", "call-1")
    assert sent.extensions["beckondepth"] == "2"
    assert "beckonstate" not in sent.extensions
    assert "\n" not in written


async def test_an_answer_that_is_sent_again_has_the_same_id(broker: Broker) -> None:
    _, ticket = await taken()

    await ticket.answer(1, sink=broker.url)
    await ticket.answer(1, sink=broker.url)

    first, second = broker.events
    assert first.id == second.id


async def test_a_failure_that_comes_later_is_reported_as_any_other(broker: Broker) -> None:
    _, ticket = await taken()

    await ticket.fail("there is no such year", sink=broker.url)

    assert broker.events[0].json() == {"error": {"reason": "tool_failed", "message": "there is no such year"}}


async def test_an_answer_that_the_broker_has_not_taken_is_reported(broker: Broker) -> None:
    _, ticket = await taken()
    broker.status = 503

    with pytest.raises(NotSent, match="did not take the answer: 503"):
        await ticket.answer(1, sink=broker.url)
    with pytest.raises(NotSent, match="does not answer: ConnectError"):
        await ticket.answer(1, sink=CLOSED)


async def test_without_a_broker_it_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("K_SINK", raising=False)
    _, ticket = await taken()

    with pytest.raises(NotSent, match="K_SINK"):
        await ticket.answer(1)


@pytest.mark.parametrize("text", ["", '{"specversion": "1.0"}', AN_EVENT])
def test_what_is_no_ticket_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no ticket"):
        Ticket.read(text)


def test_a_ticket_is_no_parameter_of_the_tool_and_comes_once() -> None:
    async def twice(first: Ticket, second: Ticket) -> None: ...

    assert list(report.signature.schema["properties"]) == ["year"]
    with pytest.raises(DeclarationError, match="the ticket of the call twice"):
        read_signature(twice)


async def test_a_ticket_reports_how_far_the_work_is_also_after_a_restart(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ticket = await taken()
    await ticket.report(1, 3)
    assert broker.events == []  # no one said where the Broker is
    monkeypatch.setenv("K_SINK", broker.url)

    await Ticket.read(ticket.text()).report(2, 3, "page 2")

    (shown,) = broker.events
    assert (shown.type, shown.json()) == (
        "test.report.progress",
        {"progress": 2, "total": 3, "message": "page 2"},
    )
    assert shown.extensions == {
        "beckonstate": "progress",
        "beckonprogress": "token-1",
        "causationid": "call-1",
    }


async def test_the_answer_does_not_pass_for_a_report(broker: Broker) -> None:
    _, ticket = await taken()
    await ticket.answer(42, sink=broker.url)

    assert "beckonprogress" not in broker.events[0].extensions


async def test_a_report_that_the_broker_does_not_take_disturbs_no_one(broker: Broker) -> None:
    _, ticket = await taken()
    broker.status = 503
    await ticket.report(1, sink=broker.url)
    await ticket.report(1, sink=CLOSED)

    assert len(broker.events) == 1
