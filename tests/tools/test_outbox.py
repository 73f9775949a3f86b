"""The outbox: an answer that comes later is durable before `answer` returns, and arrives in the end."""

import asyncio
import logging
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from beckon_runtime.process import listen
from beckon_tools import NotSent, Ticket, app, flush_outbox
from beckon_tools.command import find_tool
from beckon_tools.errors import UsageError
from beckon_tools.outbox import Outbox, find_outbox
from tests.patience import until
from tests.serving import served
from tests.tools.serving import call, configured
from tests.tools.test_deferred_results import TICKETS, Broker, report, taken
from tests.tools.tool_process import post, tool_process

CLOSED = "http://127.0.0.1:9"
REPORTS = '''
from beckon_tools import Later, Ticket, tool


@tool(type="report.slow")
async def report(year: int, ticket: Ticket) -> Later:
    """Report on a year."""
    await ticket.answer({"year": year})
    return Later()
'''


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the outbox, as the environment names it."""
    chosen = tmp_path / "outbox.db"
    monkeypatch.setenv("BECKON_TOOLS_OUTBOX", str(chosen))
    return chosen


def change(path: Path, statement: str) -> None:
    """Change the file, as time would."""
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)


def rows(path: Path) -> int:
    """Return how many answers the file holds."""
    with closing(sqlite3.connect(path)) as database:
        (number,) = database.execute("SELECT count(*) FROM beckon_outbox").fetchone()
    return int(number)


def mode(path: Path) -> int:
    """Return who may do what with a file."""
    return path.stat().st_mode & 0o777


async def ticket() -> Ticket:
    """Return the ticket of a call, as a worker reads it."""
    return Ticket.read((await taken())[1].text())


async def test_an_answer_arrives_once_though_the_broker_was_away_and_the_tool_was_killed(
    tmp_path: Path,
) -> None:
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    sink, broker = f"http://127.0.0.1:{port}", Broker()
    (tmp_path / "reports.py").write_text(REPORTS)
    settings = {"K_SINK": sink, "BECKON_TOOLS_OUTBOX": str(tmp_path / "outbox.db")}
    async with tool_process(tmp_path, "reports:report", **settings) as (process, url):
        reply = await post(url, call("report.slow", {"year": 2026}))
        process.send_signal(signal.SIGKILL)
        await process.wait()
    broker.status, broker.headers = 503, [(b"retry-after", b"1")]
    async with served(broker, port), tool_process(tmp_path, "reports:report", **settings):
        await until(lambda: len(broker.events) > 0)
        broker.events.clear()
        broker.status = 202
        await until(lambda: rows(tmp_path / "outbox.db") == 0)

    assert reply.extensions["beckonstate"] == "accepted"
    (answer,) = broker.events
    assert (answer.id, answer.json()) == ("call-1.answer", {"year": 2026})
    assert answer.extensions["replyid"] == "token-1"


async def test_an_answer_that_is_acknowledged_leaves_nothing_behind(path: Path) -> None:
    broker = Broker()
    async with served(broker) as url:
        await (await ticket()).answer(42, sink=url)

    assert [event.json() for event in broker.events] == [42]
    assert await Outbox(path).is_empty()


async def test_an_answer_that_no_broker_takes_is_in_a_file_for_its_owner_alone(path: Path) -> None:
    await (await ticket()).answer(42, sink=CLOSED)

    assert rows(path) == 1
    assert mode(path) == 0o600


async def test_the_process_that_answered_tries_again_by_itself(path: Path) -> None:
    broker = Broker()
    broker.status = 503
    async with served(broker) as url:
        await (await ticket()).fail("no paper", sink=url)
        first = len(broker.events)
        broker.status = 202
        await until(lambda: len(broker.events) > first)
        await until(lambda: rows(path) == 0)

    assert len({event.id for event in broker.events}) == 1
    assert broker.events[-1].json() == {"error": {"reason": "tool_failed", "message": "no paper"}}


async def test_a_broker_gets_no_attempt_before_the_time_that_it_names(path: Path) -> None:
    broker = Broker()
    broker.status, broker.headers = 503, [(b"retry-after", b"600")]
    async with served(broker) as url:
        await (await ticket()).answer(42, sink=url)
        assert not await flush_outbox()

        assert len(broker.events) == 1
        change(path, "UPDATE beckon_outbox SET due = 0")
        broker.status = 202
        await until(lambda: rows(path) == 0)

    assert len(broker.events) == 2


async def test_processes_that_share_an_outbox_send_an_answer_once(path: Path) -> None:
    await (await ticket()).answer(42, sink=CLOSED)
    broker = Broker()
    async with served(broker) as url:
        change(path, f"UPDATE beckon_outbox SET due = 0, sink = '{url}'")
        await asyncio.gather(*(Outbox(path).send_due() for _ in range(5)))
        await until(lambda: rows(path) == 0)

    assert len(broker.events) == 1


async def test_an_answer_is_tried_until_its_call_expires(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    TICKETS.clear()
    await taken(expirytime="2199-01-01T00:00:00Z")
    await TICKETS[0].answer(42, sink=CLOSED)
    with closing(sqlite3.connect(path)) as database:
        (expires,) = database.execute("SELECT expires FROM beckon_outbox").fetchone()
    assert expires == 7226582400

    change(path, "UPDATE beckon_outbox SET due = 0, expires = 1")
    with caplog.at_level(logging.ERROR):
        await flush_outbox()
        await until(lambda: rows(path) == 0)

    assert "answer call-1.answer is given up" in caplog.text


async def test_an_answer_that_a_broker_refuses_for_good_is_not_sent(path: Path) -> None:
    broker = Broker()
    broker.status = 413
    async with served(broker) as url:
        with pytest.raises(NotSent, match="did not take the answer: 413"):
            await (await ticket()).answer(42, sink=url)

    assert await Outbox(path).is_empty()


async def test_an_outbox_that_cannot_be_written_is_an_error_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = str(tmp_path / "missing" / "outbox.db")
    with pytest.raises(UsageError, match=r"BECKON_TOOLS_OUTBOX: .* cannot be written"):
        app(report, configured(outbox=missing))
    monkeypatch.setenv("BECKON_TOOLS_OUTBOX", missing)
    with pytest.raises(NotSent, match="takes no answer"):
        await (await ticket()).answer(42, sink=CLOSED)


def test_a_tool_that_answers_at_once_opens_no_outbox(tmp_path: Path) -> None:
    for declared, name in ((report, "late"), (find_tool("calculator", configured()), "at once")):
        app(declared, configured(outbox=str(tmp_path / name)))

    assert [found.name for found in tmp_path.iterdir()] == ["late"]


async def test_without_an_outbox_there_is_nothing_to_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BECKON_TOOLS_OUTBOX", raising=False)
    assert find_outbox() is None
    assert "BECKON_TOOLS_OUTBOX" not in os.environ
    with pytest.raises(UsageError, match="set BECKON_TOOLS_OUTBOX"):
        await flush_outbox()
