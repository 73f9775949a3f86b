"""Every test of the store's behaviour runs on both databases, real ones."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store
from tests.agent.store.postgres import Server, server

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server for this session."""
    with server() as running:
        yield running


@pytest.fixture(scope="session")
def template(postgres: Server) -> str:
    """The name of a database with the newest schema, to be copied: that is faster than migrating."""

    async def make() -> None:
        store = await open_store(await postgres.copy("ready"))
        await store.aclose()

    asyncio.run(make())
    return "ready"


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> str:
    """Which database a test runs on."""
    name: str = request.param
    return name


@pytest.fixture
def running(database: str, request: pytest.FixtureRequest) -> Server | None:
    """The server that the database needs."""
    needed: Server | None = request.getfixturevalue("postgres") if database == "postgresql" else None
    return needed


@pytest.fixture
def like(database: str, request: pytest.FixtureRequest) -> str:
    """What a new database is a copy of."""
    name: str = request.getfixturevalue("template") if database == "postgresql" else ""
    return name


@pytest_asyncio.fixture
async def empty(tmp_path: Path, running: Server | None) -> str:
    """The address of a database without anything in it."""
    return await _without_anything(tmp_path / "store.db", running)


@pytest_asyncio.fixture
async def another_empty(tmp_path: Path, running: Server | None) -> str:
    """The address of a second one."""
    return await _without_anything(tmp_path / "another.db", running)


async def _without_anything(path: Path, running: Server | None) -> str:
    return f"sqlite:///{path}" if running is None else await running.copy(f"t{next(_numbers)}")


@pytest_asyncio.fixture
async def url(tmp_path: Path, running: Server | None, like: str) -> str:
    """The address of a database that is ready, or that will be when it is opened first."""
    if running is None:
        return f"sqlite:///{tmp_path / 'store.db'}"
    return await running.copy(f"t{next(_numbers)}", like)


@pytest_asyncio.fixture
async def store(url: str) -> AsyncIterator[Store]:
    """An open store of the test's own."""
    opened = await open_store(url)
    yield opened
    await opened.aclose()
