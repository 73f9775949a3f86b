"""SIGKILL at every step of a run with parallel calls: the right answer, each effect once, no run stuck."""

import asyncio
import logging

import pytest

from tests.agent.store.raw import execute
from tests.e2e.crash.agents import SECONDS
from tests.e2e.crash.site import POSTGRESQL, SQLITE, Site
from tests.e2e.crash.tools import CALLED, DELIVERIES, PLACES
from tests.e2e.crash.walk import POINTS, WITHIN, Point, comes_right, killed_at
from tests.patience import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="package"), pytest.mark.timeout(4 * SECONDS)]

logger = logging.getLogger(__name__)
CALLS_ARE_MADE = next(point for point in POINTS if point.name == CALLED)


async def taken_over(site: Site, point: Point) -> float:
    """Walk as on a cluster: a second replica shares the PostgreSQL, and was there all the time."""
    replica, store = site.replicas[POSTGRESQL]
    walked = await killed_at(site, point, f"{point.name}, taken over", store)
    return await comes_right(walked, replica, again=point.again)


async def restarted(site: Site, point: Point) -> float:
    """Walk as on a laptop: no one else uses the SQLite file, and the agent is started again."""
    store = await site.databases.new(SQLITE)
    walked = await killed_at(site, point, f"{point.name}, restarted", store)
    return await comes_right(walked, await site.agent(store), again=point.again)


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name.replace(" ", "-"))
async def test_a_run_outlives_its_agent(site: Site, point: Point) -> None:
    async with asyncio.TaskGroup() as group:
        on_cluster = group.create_task(taken_over(site, point))
        on_laptop = group.create_task(restarted(site, point))
    logger.info(
        "%s: taken over %.2f s, restarted %.2f s", point.name, on_cluster.result(), on_laptop.result()
    )


@pytest.mark.parametrize("kind", [SQLITE, POSTGRESQL])
async def test_another_replica_takes_over_within_seconds(site: Site, kind: str) -> None:
    replica, store = site.replicas[kind]
    walked = await killed_at(site, CALLS_ARE_MADE, f"the lease, {kind}", store, at_once=False)

    seconds = await comes_right(walked, replica)

    logger.info("taken over after %.2f s", seconds)
    assert seconds < WITHIN


async def test_an_answer_that_comes_while_no_one_has_the_run_is_taken_from_the_shim(site: Site) -> None:
    replica, store = site.replicas[POSTGRESQL]
    walked = await killed_at(
        site, CALLS_ARE_MADE, "the late replies", store, at_once=False, BECKON_LEASE_SECONDS="300"
    )
    run_id = await walked.id()
    calls = f"SELECT event_id FROM calls WHERE run_id = '{run_id}' AND state = 'done'"

    async def are_answered() -> bool:
        return len(await execute(store, calls)) == len(PLACES)

    await eventually(are_answered, SECONDS)
    await walked.pass_the_time()
    await comes_right(walked, replica)

    assert [DELIVERIES[event_id] for (event_id,) in await execute(store, calls)] == [1, 1]
