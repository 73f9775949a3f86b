"""Whether the store can be written is found out by writing."""

import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import asyncpg  # type: ignore[import-untyped]  # the package brings no types

from beckon_agent.api.operations import StoreHealth
from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store
from tests.agent.store.postgres import server
from tests.patience import eventually


@asynccontextmanager
async def locked(url: str) -> AsyncIterator[None]:
    """Let another connection hold what every writer needs."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")
        return
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute("LOCK TABLE limit_places IN ACCESS EXCLUSIVE MODE")
            yield
    finally:
        await connection.close()


async def test_a_store_that_another_process_locks_cannot_be_written_until_it_is_free(
    store: Store, url: str
) -> None:
    health = StoreHealth(store.counters, fresh=0, patience=0.3)
    await eventually(health.is_writable)  # a slow disk takes longer for its first write

    async with locked(url):
        assert not await health.is_writable()
        await store.runs.get("any")  # a reader sees nothing of it

    await eventually(health.is_writable)


async def test_an_answer_is_good_for_a_moment(store: Store, url: str) -> None:
    health = StoreHealth(store.counters, fresh=600, patience=30)
    assert await health.is_writable()

    async with locked(url):
        assert await health.is_writable()


async def test_a_server_that_is_stopped_cannot_be_written() -> None:
    with server() as running:
        store = await open_store(await running.copy("t"))
        try:
            health = StoreHealth(store.counters, fresh=0)
            await eventually(health.is_writable)
            postmaster = int((running.folder / "data" / "postmaster.pid").read_text().splitlines()[0])
            os.kill(postmaster, signal.SIGQUIT)  # as `pg_ctl stop -m immediate`

            async def is_noticed() -> bool:
                return not await health.is_writable()

            await eventually(is_noticed)
        finally:
            await store.aclose()
