"""Every test of the store's behaviour runs on both databases, real ones."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store
from tests.agent.store.postgres import Server

_numbers = itertools.count(1)


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
    """The template of the databases that are lent."""
    name: str = request.getfixturevalue("template") if database == "postgresql" else ""
    return name


@pytest_asyncio.fixture
async def empty(tmp_path: Path, running: Server | None) -> AsyncIterator[str]:
    """The address of a database without anything in it."""
    async with _database(tmp_path / "store.db", running) as url:
        yield url


@pytest_asyncio.fixture
async def another_empty(tmp_path: Path, running: Server | None) -> AsyncIterator[str]:
    """The address of a second one."""
    async with _database(tmp_path / "another.db", running) as url:
        yield url


@asynccontextmanager
async def _database(path: Path, running: Server | None) -> AsyncIterator[str]:
    """Have a database until the end of the block; those of all tests would be gigabytes."""
    if running is None:
        yield f"sqlite:///{path}"
        return
    name = f"t{next(_numbers)}"
    yield await running.copy(name)
    await running.drop(name)


@pytest_asyncio.fixture
async def url(tmp_path: Path, running: Server | None, like: str) -> AsyncIterator[str]:
    """The address of a database whose tables are empty, or will be made when it is opened first."""
    if running is None:
        yield f"sqlite:///{tmp_path / 'store.db'}"
        return
    async with running.lend(like) as address:
        yield address


@pytest_asyncio.fixture
async def store(url: str) -> AsyncIterator[Store]:
    """An open store of the test's own."""
    opened = await open_store(url)
    yield opened
    await opened.aclose()
