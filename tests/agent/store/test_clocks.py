"""The clock of one replica may be wrong by minutes: what is due, the database's clock says.

With SQLite all replicas are processes of one machine, and have its clock; so a replica whose clock
differs needs PostgreSQL.
"""

import asyncio
import sys
import time

import pytest

from beckon_agent.core.records import StoredCall
from beckon_agent.store.base import Store
from tests.agent.store.examples import LONG, ME, OTHER, begun, call, called, ended
from tests.agent.store.raw import execute
from tests.patience import PATIENCE

only_postgresql = pytest.mark.parametrize("database", ["postgresql"])

BEHIND, AHEAD = -600, 600  # seconds
DAY = 86_400.0


async def replica(skew: int, verb: str, url: str) -> None:
    """Let a process with a wrong clock do its work."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.agent.store.skewed", str(skew), verb, url, stderr=asyncio.subprocess.PIPE
    )
    _, said = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == 0, said.decode()


async def the_call(store: Store) -> StoredCall:
    found = await store.journal.find_call("e1")
    assert found is not None
    return found[1]


@only_postgresql
async def test_a_replica_whose_clock_is_behind_gives_a_call_its_whole_time(store: Store, url: str) -> None:
    await called(store, "r1", call("e1"))
    await store.journal.mark_sent("r1", ME, "e1")

    await replica(BEHIND, "accept", url)

    accepted = await the_call(store)
    assert accepted.state == "accepted"
    assert accepted.deadline == pytest.approx(time.time() + DAY, abs=60)


@only_postgresql
@pytest.mark.parametrize(("skew", "seconds", "state"), [(AHEAD, 60, "accepted"), (BEHIND, -1, "done")])
async def test_a_replica_whose_clock_is_wrong_ends_what_is_due_and_nothing_else(
    store: Store, url: str, skew: int, seconds: float, state: str
) -> None:
    await called(store, "r1", call("e1"))
    await store.journal.mark_sent("r1", ME, "e1")
    await store.journal.mark_accepted("r1", ME, "e1", seconds=seconds)

    await replica(skew, "keep-house", url)

    assert (await the_call(store)).state == state


@only_postgresql
async def test_a_replica_whose_clock_is_ahead_deletes_no_run_too_early(store: Store, url: str) -> None:
    await ended(store, "r1")
    await ended(store, "old")
    await execute(url, "UPDATE runs SET ended_at = ended_at - 3700 WHERE id = 'old'")

    await replica(6 * AHEAD + 60, "purge", url)

    assert await store.runs.get("r1") is not None
    assert await store.runs.get("old") is None


async def test_what_a_lost_process_worked_is_reckoned_where_the_run_is_taken_over(
    store: Store, url: str
) -> None:
    await begun(store, "r1", seconds=-1)
    await execute(url, "UPDATE runs SET since = since - 31")

    [taken] = await store.runs.claim_runs(OTHER, seconds=LONG, most=1)

    assert taken.worked == pytest.approx(31, abs=5)
    assert taken.since == pytest.approx(time.time(), abs=5)
