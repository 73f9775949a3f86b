import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from beckon_agent.store.base import Store, StoreUnavailable
from beckon_agent.store.sql.open import open_store
from tests.agent.store.examples import LONG, OTHER, begun, new_run
from tests.agent.store.raw import execute

ENOUGH = 20


async def test_many_at_once_wait_for_their_turn(store: Store) -> None:
    created = await asyncio.gather(*(begun(store, f"r{number}") for number in range(60)))

    assert len({run.id for run in created}) == 60
    assert len(await store.runs.renew_leases("replica-a", seconds=LONG)) == 60


async def test_who_gives_up_waiting_leaves_no_half_of_anything(store: Store) -> None:
    for round_ in range(5):
        new = [new_run(f"r{round_}-{number}") for number in range(8)]
        tasks = [asyncio.create_task(store.runs.create(one, holder=None, seconds=LONG)) for one in new]
        await asyncio.wait(tasks[:1])
        for _ in range(2):  # the second hits those that are undoing what the first interrupted
            for task in tasks:
                task.cancel()
            await asyncio.sleep(0)
        await asyncio.gather(*tasks, return_exceptions=True)

    claimed = await store.runs.claim_runs(OTHER, seconds=LONG, most=99)
    assert 5 <= len(claimed) <= 40
    assert all(run.input for run in claimed)
    # No connection is lost: these would wait for one.
    assert len(await asyncio.gather(*(begun(store, f"after-{number}") for number in range(30)))) == 30


async def test_connections_that_the_server_closed_are_replaced(store: Store, url: str) -> None:
    await begun(store, "r1")
    if url.startswith("postgresql"):
        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        assert await execute(url, f"SELECT pg_terminate_backend(pid) {others}") == [(True,)]

    for _ in range(ENOUGH):
        try:
            run = await store.runs.get("r1")
        except StoreUnavailable:
            continue
        assert run is not None
        return
    raise AssertionError("no new connection was opened")


async def test_a_writer_that_waited_too_long_for_another_can_write_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beckon_agent.store.sql.sqlite.PATIENCE", 0.1)
    path = tmp_path / "store.db"
    store = await open_store(f"sqlite:///{path}")
    await begun(store, "r1")

    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="database is locked"):
            await begun(store, "r2")
        assert await store.runs.get("r1") is not None
        other.execute("ROLLBACK")

    assert (await begun(store, "r2")).id == "r2"
    await store.aclose()
