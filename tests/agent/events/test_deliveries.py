"""Brokers deliver at least once, hang up, deliver again, and name the time that their sender waits."""

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import replace

import httpx
import orjson

from beckon_agent.api.events.request import EventRules, run_id_of
from beckon_agent.auth.quotas import LimitReached
from beckon_agent.core.records import StoredRun
from beckon_agent.core.run_events import RunEvent, RunSuspended
from beckon_agent.durable.base import Ask
from beckon_contract.cloudevents.events import CloudEvent
from beckon_contract.cloudevents.extensions import format_expiry
from tests.agent.events.answering_agent import Setup, answering_agent, asking, event, held, problem
from tests.agent.events.memory_engine import MemoryEngine, doing
from tests.agent.scripted_model import says
from tests.patience import PATIENCE, eventually


def expiring(seconds: float) -> CloudEvent:
    return asking(expirytime=format_expiry(time.time() + seconds).decode())


def error_of(response: httpx.Response) -> dict[str, str]:
    assert response.status_code == 200, response.text
    found: dict[str, str] = orjson.loads(response.content)["error"]
    return found


async def test_an_event_that_comes_twice_is_run_once_and_answered_the_same() -> None:
    async with answering_agent(says("Yes.")) as agent:
        first, second = [await agent.send(asking()) for _ in range(2)]

        assert first.content == second.content
        assert {k: v for k, v in first.headers.items() if k.startswith("ce-")} == {
            k: v for k, v in second.headers.items() if k.startswith("ce-")
        }
        assert len(agent.requests) == 1


async def test_deliveries_at_the_same_time_share_one_run() -> None:
    answer, gate = held()
    async with answering_agent(answer) as agent:
        deliveries = [asyncio.create_task(agent.send(asking())) for _ in range(5)]
        await eventually(lambda: _is(len(agent.requests) == 1))
        gate.set()
        answers = await asyncio.gather(*deliveries)

        assert {answer.content for answer in answers} == {b'{"answer":"At last."}'}
        assert len(agent.requests) == 1


class Blind(MemoryEngine):
    """An engine that does not know of a run which another replica is just beginning."""

    async def get(self, run_id: str) -> StoredRun | None:
        return None


async def test_of_two_replicas_that_begin_at_once_one_runs_and_both_answer() -> None:
    async with answering_agent(says("Yes."), setup=Setup(engine=Blind)) as agent:
        answers = [await agent.reply(asking()) for _ in range(2)]

        assert [answer.json() for answer in answers] == [{"answer": "Yes."}] * 2
        assert len(agent.requests) == 1


def test_a_run_belongs_to_one_event_one_agent_and_one_owner() -> None:
    first, other = asking(name="1"), replace(asking(name="1"), source="/other")
    keys = [
        (first, "a", ""),
        (other, "a", ""),
        (asking(name="2"), "a", ""),
        (first, "b", ""),
        (first, "a", "x"),
    ]

    assert len({run_id_of(*key) for key in keys}) == len(keys)
    assert run_id_of(replace(first, data=b"", subject="s"), "a", "") == run_id_of(first, "a", "")


async def test_a_broker_that_hangs_up_finds_the_run_when_it_comes_again() -> None:
    answer, gate = held()
    async with answering_agent(answer) as agent:
        delivery = asyncio.create_task(agent.send(asking()))
        await eventually(lambda: _is(len(agent.requests) == 1))
        delivery.cancel()
        await asyncio.gather(delivery, return_exceptions=True)
        gate.set()

        assert (await agent.reply(asking())).json() == {"answer": "At last."}
        assert len(agent.requests) == 1


async def test_who_prefers_to_wait_no_longer_has_to_come_again_for_the_answer() -> None:
    answer, gate = held()
    async with answering_agent(answer) as agent:
        early = await agent.send(asking(), headers={"prefer": "wait=0.05"})
        gate.set()

        assert "deliver it again" in problem(early, 503)
        assert early.headers["retry-after"] == "1"
        assert (await agent.reply(asking())).json() == {"answer": "At last."}
        assert len(agent.requests) == 1


async def test_an_event_that_had_expired_is_reported_as_such_and_asks_no_model() -> None:
    async with answering_agent() as agent:
        error = error_of(await agent.send(expiring(-1)))
        unawaited = await agent.send(expiring(-1).without("correlationid"))

        assert error["reason"] == "timeout"
        assert "no run was started" in error["message"]
        assert "had expired" in problem(unawaited, 424)
        assert agent.requests == []


async def test_an_event_that_expires_meanwhile_is_answered_as_late_and_its_run_ends() -> None:
    answer, _ = held()
    async with answering_agent(answer) as agent:
        error = error_of(await agent.send(expiring(1)))

        assert error["reason"] == "timeout"
        assert "expired before the agent had an answer" in error["message"]
        await asyncio.wait_for(agent.model.hung_up.wait(), PATIENCE)


async def test_a_full_agent_answers_the_broker_with_a_503() -> None:
    answer, gate = held()
    async with answering_agent(answer, says("Yes."), setup=Setup(max_runs=1)) as agent:
        first = asyncio.create_task(agent.send(asking(name="1")))
        await eventually(lambda: _is(len(agent.requests) == 1))
        refused = await agent.send(asking(name="2"))
        gate.set()

        assert "limit of runs" in problem(refused, 503)
        assert refused.headers["retry-after"] == "1"
        assert (await first).status_code == 200
        assert (await agent.send(asking(name="2"))).status_code == 200


async def test_deliveries_that_wait_have_a_limit_of_their_own() -> None:
    answer, gate = held()
    async with answering_agent(answer, setup=Setup(rules=EventRules(max_waiting=1))) as agent:
        first = asyncio.create_task(agent.send(asking()))
        await eventually(lambda: _is(len(agent.requests) == 1))
        refused = await agent.send(asking())
        gate.set()

        assert "too many events wait" in problem(refused, 503)
        assert (await first).status_code == 200
        assert (await agent.send(asking())).status_code == 200


class Spent(MemoryEngine):
    """An engine whose user has no room left under a limit."""

    async def start(self, ask: Ask) -> StoredRun:
        raise LimitReached("the requests of this minute are used", 6.2)


async def test_a_limit_without_room_says_when_to_come_again() -> None:
    async with answering_agent(setup=Setup(engine=Spent)) as agent:
        response = await agent.send(asking())

        assert "requests of this minute" in problem(response, 429)
        assert response.headers["retry-after"] == "7"


async def suspended(_: Ask) -> AsyncGenerator[RunEvent]:
    """A run that waits for a person."""
    yield RunSuspended()


async def test_a_run_that_is_suspended_holds_no_connection() -> None:
    async with answering_agent(setup=Setup(engine=doing(suspended))) as agent:
        error = error_of(await agent.send(asking()))
        unawaited = await agent.send(event({"lamp": 1}, "e2"))

        assert error["reason"] == "timeout"
        assert "waits for an approval" in error["message"]
        assert (unawaited.status_code, unawaited.content) == (202, b"")


async def _is(condition: bool) -> bool:
    return condition
