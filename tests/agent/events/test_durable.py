"""The face over the real engine and a real store: replicas, and processes that die."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from beckon_agent.durable.engine import RunEngine
from beckon_agent.service import Service
from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store
from beckon_contract.cloudevents.events import CloudEvent
from tests.agent.durable.engines import QUICK
from tests.agent.events.answering_agent import AnsweringAgent, Setup, answering_agent, asking, held
from tests.agent.scripted_model import Script, says
from tests.patience import eventually


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await open_store(f"sqlite:///{tmp_path / 'runs.db'}")
    try:
        yield opened
    finally:
        await opened.aclose()


@asynccontextmanager
async def replica(store: Store, *script: Script) -> AsyncIterator[AnsweringAgent]:
    """Serve a replica that works on its runs until the end of the block."""

    @asynccontextmanager
    async def engine(service: Service) -> AsyncIterator[RunEngine]:
        made = RunEngine(store, service, f"test-{secrets.token_hex(4)}", QUICK)
        serving = asyncio.create_task(made.serve())
        try:
            yield made
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    async with answering_agent(*script, setup=Setup(engine=engine)) as agent:
        yield agent


async def test_replicas_that_get_the_same_event_run_it_once_and_answer_the_same(store: Store) -> None:
    async with AsyncExitStack() as stack:
        agents = [await stack.enter_async_context(replica(store, says("Yes."))) for _ in range(3)]

        replies = await asyncio.gather(*(agent.reply(asking()) for agent in agents))

        assert [reply.json() for reply in replies] == [{"answer": "Yes."}] * 3
        assert len({reply.id for reply in replies}) == 1
        assert sum(len(agent.requests) for agent in agents) == 1


async def test_an_event_whose_replica_died_is_answered_by_another_one(store: Store) -> None:
    answer, _ = held()
    async with replica(store, answer) as dying:
        delivery = asyncio.create_task(dying.send(asking(beckondepth=2)))
        await eventually(lambda: _is(len(dying.requests) == 1))
        delivery.cancel()
        await asyncio.gather(delivery, return_exceptions=True)
    async with replica(store, says("Yes.")) as other:
        reply = await other.reply(asking(beckondepth=2))

        assert reply.json() == {"answer": "Yes."}
        assert str(reply.extensions["beckondepth"]) == "3"
        assert len(other.requests) == 1


async def test_an_answer_is_there_also_after_all_replicas_were_started_anew(store: Store) -> None:
    async with replica(store, says("Yes.")) as first:
        said = await first.reply(asking())
    async with replica(store) as second:
        assert await second.reply(asking()) == said
        assert second.requests == []


@pytest.mark.parametrize(
    ("late", "headers"),
    [(asking(expirytime="2020-01-01T00:00:00Z"), {}), (asking(), {"prefer": "wait=0"})],
    ids=["expired", "impatient"],
)
async def test_what_is_over_is_reported_however_late_it_is(
    store: Store, late: CloudEvent, headers: dict[str, str]
) -> None:
    async with replica(store, says("Yes.")) as agent:
        await agent.reply(asking())
        response = await agent.send(late, headers=headers)

        assert (response.status_code, response.json()) == (200, {"answer": "Yes."})


async def _is(condition: bool) -> bool:
    return condition
