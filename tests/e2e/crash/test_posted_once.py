"""SIGKILL of an agent during calls of a service without the SDK: each call runs once."""

import asyncio
import time

import pytest

from tests.agent.store.raw import execute
from tests.e2e.crash.agents import SECONDS
from tests.e2e.crash.gates import GATES
from tests.e2e.crash.site import POSTGRESQL, Site
from tests.e2e.crash.tools import CALLED, EFFECTS, PLACES, PLAIN
from tests.e2e.crash.walk import Point, Walked, comes_right, killed_at
from tests.patience import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="package"), pytest.mark.timeout(4 * SECONDS)]

CALLS_ARE_MADE = Point(CALLED, place=CALLED, requests=len(PLACES))


async def killed_during_calls(site: Site, name: str, seconds: float = 30) -> Walked:
    """Begin a run, and kill its agent while the service works on both calls, which it goes on to do."""
    gate = GATES.put(CALLED, name, len(PLACES))
    store = site.replicas[POSTGRESQL][1]
    first = await site.agent(store, BECKON_CALL_TIMEOUT=str(seconds))
    asking = asyncio.create_task(first.ask(name))
    await asyncio.wait_for(gate.arrived.wait(), SECONDS)
    first.kill()
    await first.ended()
    await asking
    return Walked(name, store, first, time.monotonic())


async def taken_over(walked: Walked) -> None:
    """Let another agent take the run over, and wait until it has."""
    await walked.pass_the_time()
    run_id = await walked.id()

    async def is_another_s() -> bool:
        rows = await execute(walked.store, f"SELECT takeovers FROM runs WHERE id = '{run_id}'")
        return bool(rows[0][0])

    await eventually(is_another_s, SECONDS)


async def test_who_takes_a_run_over_waits_for_the_reply_to_the_first_post(site: Site) -> None:
    name = f"{PLAIN}: the reply comes after the takeover"
    walked = await killed_during_calls(site, name)
    await taken_over(walked)
    await asyncio.sleep(1)  # in which a second post would have arrived
    assert [EFFECTS[name, place] for place in PLACES] == [1, 1]
    GATES.open_all()

    await comes_right(walked, site.replicas[POSTGRESQL][0])


async def test_who_takes_a_run_over_finds_the_reply_that_came_before(site: Site) -> None:
    name = f"{PLAIN}: the reply comes before the takeover"
    store = site.replicas[POSTGRESQL][1]
    walked = await killed_at(site, CALLS_ARE_MADE, name, store, at_once=False, BECKON_LEASE_SECONDS="300")
    calls = f"SELECT event_id FROM calls WHERE run_id = '{await walked.id()}' AND state = 'done'"

    async def are_answered() -> bool:
        return len(await execute(store, calls)) == len(PLACES)

    await eventually(are_answered, SECONDS)
    await walked.pass_the_time()

    await comes_right(walked, site.replicas[POSTGRESQL][0])


async def test_a_call_without_a_reply_ends_with_an_unknown_outcome_at_the_deadline_of_its_first_post(
    site: Site,
) -> None:
    name = f"{PLAIN}: no reply comes"
    walked = await killed_during_calls(site, name, seconds=2)
    await taken_over(walked)
    run_id = await walked.id()
    assert run_id is not None
    replica = site.replicas[POSTGRESQL][0]

    (*_, ended) = await replica.join(run_id)

    calls = [item for item in ended["response"]["output"] if item["type"] == "mcp_call"]
    assert [call["error"]["content"]["reason"] for call in calls] == ["outcome_unknown", "outcome_unknown"]
    assert "may have run" in calls[0]["error"]["content"]["message"]
    assert [EFFECTS[name, place] for place in PLACES] == [1, 1]
    GATES.open_all()
