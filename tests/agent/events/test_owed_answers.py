"""Answers after a suspension reach their Broker, however it and the run behave."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.events.owed_answers import AnswerSender, SendingPace
from beckon_agent.api.events.request import FACE, EventRules
from beckon_agent.core.records import Ended, LogEntries, NewRun, RunStatus
from beckon_agent.core.run_events import RunEvent, RunFailed, RunFinished, RunSuspended, TextDelta
from beckon_agent.durable.base import event_to_document
from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store
from beckon_contract.cloudevents.events import CloudEvent, from_http
from tests.agent.events.answering_agent import asking, event
from tests.patience import eventually
from tests.shim.support import Posted, Server, serving

ME = "replica"
QUICK = SendingPace(look=0.01, first_pause=0.01, longest_pause=0.05)
SUSPENDED = RunSuspended()
FINISHED = (TextDelta("It says 42."), RunFinished("stop", None, ()))


@dataclass(slots=True)
class NoAgents:
    """A registry without agents, complete or not."""

    complete: bool = True
    default: str = "researcher"
    tools: int = 0
    looks: list[str] = field(default_factory=list)

    def find(self, name: str) -> None:
        self.looks.append(name)

    def hosted(self) -> Sequence[AgentHandle]:
        return ()

    async def watch(self) -> None:
        await asyncio.Event().wait()


@dataclass(slots=True)
class Sending:
    """A sender over a real store, and the Broker that it sends to."""

    file: Path
    store: Store
    broker: Server
    registry: NoAgents

    async def end_run(
        self,
        *events: RunEvent,
        status: RunStatus = "completed",
        error: dict[str, str] | None = None,
        question: CloudEvent | None = None,
    ) -> None:
        """Store a run of an event that has published these events, and end it."""
        request = {"event": (question or asking()).attributes() | {"data": {"question": "Why?"}}}
        new = NewRun(id="r1", owner="", agent="shop/researcher", face=FACE, input=[], request=request)
        await self.store.runs.create(new, holder=ME, seconds=60)
        said = LogEntries(1, [event_to_document(event) for event in events])
        await self.store.runs.end_run("r1", ME, Ended(status, error=error, owed=True), said)

    async def settled(self) -> None:
        """Wait until no answer is owed."""

        async def owes_nothing() -> bool:
            with closing(sqlite3.connect(self.file)) as database:
                (owed,) = database.execute("SELECT count(*) FROM owed_answers").fetchone()
                return bool(owed == 0)

        await eventually(owes_nothing)

    def replies(self) -> list[CloudEvent]:
        """Return the replies that the Broker got."""
        return [_to_event(posted) for posted in self.broker.posts]


@pytest.fixture
async def sending(tmp_path: Path) -> AsyncIterator[Sending]:
    async with _sending(tmp_path) as running:
        yield running


@asynccontextmanager
async def _sending(folder: Path) -> AsyncIterator[Sending]:
    file = folder / "runs.db"
    store = await open_store(f"sqlite:///{file}")
    try:
        async with serving() as broker, aiohttp.ClientSession() as session:
            registry = NoAgents()
            rules = EventRules(sink=f"{broker.url}/default/default")
            sender = AnswerSender(store, session, registry, rules, "default", QUICK)
            task = asyncio.create_task(sender.send_until_cancelled())
            yield Sending(file, store, broker, registry)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    finally:
        await store.aclose()


async def test_an_answer_is_sent_once_with_the_source_of_an_agent_that_is_gone(sending: Sending) -> None:
    await sending.end_run(SUSPENDED, *FINISHED)
    await sending.settled()

    (reply,) = sending.replies()
    assert sending.broker.posts[0].path == "/default/default"
    assert (reply.json(), reply.type) == ({"answer": "It says 42."}, "ask.researcher.reply")
    assert reply.source == "/beckon/agents/shop/researcher"
    assert (reply.extensions["replyid"], reply.extensions["causationid"]) == ("token-1", "e1")


async def test_a_broker_that_is_away_gets_the_answer_later(sending: Sending) -> None:
    failures = iter([503, 404, 401, 302, 0])

    async def fail_first(posted: Posted) -> web.Response | None:
        status = next(failures, 202)
        if not status:
            posted.cut()
        return web.Response(status=status or 202, headers={"location": "/elsewhere"})

    sending.broker.behaviour = fail_first
    await sending.end_run(SUSPENDED, *FINISHED)
    await sending.settled()

    replies = sending.replies()
    assert len(replies) == 6
    assert len({reply.id for reply in replies}) == 1
    assert {posted.path for posted in sending.broker.posts} == {"/default/default"}


async def test_an_answer_that_the_broker_will_never_accept_is_given_up(
    sending: Sending, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(_: Posted) -> web.Response:
        return web.Response(status=413)

    sending.broker.behaviour = refuse
    await sending.end_run(SUSPENDED, *FINISHED)
    await sending.settled()

    assert len(sending.broker.posts) == 1
    assert f"the answer of run r1 is given up: the Broker at {sending.broker.url}" in caplog.text
    assert "answers 413" in caplog.text


@pytest.mark.parametrize(
    ("events", "status", "error", "message"),
    [
        (
            (SUSPENDED, RunFailed("model_error", "no credit left")),
            "failed",
            {"message": "no credit left"},
            "the agent failed: no credit left",
        ),
        ((SUSPENDED,), "cancelled", None, "the agent failed: the run is cancelled"),
        (
            (SUSPENDED,),
            "failed",
            {"code": "agent_gone", "message": "there is no agent 'x' any more"},
            "the agent failed: there is no agent 'x' any more",
        ),
    ],
    ids=["failed", "cancelled", "given up"],
)
async def test_a_caller_learns_at_once_that_there_will_be_no_answer(
    sending: Sending,
    events: tuple[RunEvent, ...],
    status: RunStatus,
    error: dict[str, str] | None,
    message: str,
) -> None:
    await sending.end_run(*events, status=status, error=error)
    await sending.settled()

    (reply,) = sending.replies()
    assert reply.json() == {"error": {"reason": "tool_failed", "message": message}}


@pytest.mark.parametrize(
    ("events", "question"),
    [(FINISHED, asking()), ((SUSPENDED, *FINISHED), event({"question": "Why?"}))],
    ids=["never suspended", "no caller waits"],
)
async def test_nothing_is_sent_where_no_answer_is_awaited(
    sending: Sending, events: tuple[RunEvent, ...], question: CloudEvent
) -> None:
    await sending.end_run(*events, question=question)
    await sending.settled()

    assert sending.registry.looks == ["shop/researcher"]
    assert sending.broker.posts == []


async def test_a_run_that_cannot_be_read_any_more_keeps_no_other_answer_back(
    sending: Sending, caplog: pytest.LogCaptureFixture
) -> None:
    new = NewRun(id="r0", owner="", agent="researcher", face=FACE, input=[], request={"event": {"id": 1}})
    await sending.store.runs.create(new, holder=ME, seconds=60)
    await sending.store.runs.end_run("r0", ME, Ended("completed", owed=True))
    await sending.end_run(SUSPENDED, *FINISHED)
    await sending.settled()

    assert len(sending.broker.posts) == 1
    assert "the answer of run r0 is given up: what is stored of it cannot be read" in caplog.text


async def test_answers_wait_for_the_agents_to_be_known(sending: Sending) -> None:
    sending.registry.complete = False
    await sending.end_run(SUSPENDED, *FINISHED)
    await asyncio.sleep(5 * QUICK.look)
    early = len(sending.broker.posts)
    sending.registry.complete = True
    await sending.settled()

    assert (early, len(sending.broker.posts)) == (0, 1)


def test_pauses_double_up_to_the_longest() -> None:
    pace = SendingPace()

    assert 0.8 <= pace.pause_after(0) <= 1.2
    assert 6.4 <= pace.pause_after(3) <= 9.6
    assert 240 <= pace.pause_after(1_000_000) <= 360


def _to_event(posted: Posted) -> CloudEvent:
    headers = [(name.lower().encode(), value.encode()) for name, value in posted.headers.items()]
    return from_http(headers, posted.body)
