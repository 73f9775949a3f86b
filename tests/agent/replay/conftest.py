"""A whole agent service with a real store, over both databases, and what it takes to replay its runs."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

import pytest

from beckon_agent.store.sql.open import open_store
from tests.agent.conftest import StartAgent
from tests.agent.replay.replaying import Replaying, replaying
from tests.agent.running_agent import Setup
from tests.agent.scripted_model import Script
from tests.agent.store.postgres import Server


class StartService(Protocol):
    """Starts a service whose runs are stored, with a scripted model."""

    def __call__(self, *script: Script, setup: Setup | None = None) -> AbstractAsyncContextManager[Replaying]:
        """Serve until the end of the block."""
        ...


@pytest.fixture
def database_url(tmp_path: Path) -> str:
    """The file that a test's services share."""
    return f"sqlite:///{tmp_path / 'store.db'}"


@pytest.fixture
def start_service(start_agent: StartAgent, database_url: str) -> StartService:
    """Start services over a file."""
    return _starting(start_agent, database_url)


@pytest.fixture
async def start_on_postgres(start_agent: StartAgent, postgres: Server) -> StartService:
    """Start services over PostgreSQL."""
    return _starting(start_agent, await postgres.copy("replays"))


def _starting(start_agent: StartAgent, url: str) -> StartService:
    @asynccontextmanager
    async def start(*script: Script, setup: Setup | None = None) -> AsyncIterator[Replaying]:
        store = await open_store(url)
        try:
            async with start_agent(*script, setup=setup) as agent, replaying(agent, store) as service:
                yield service
        finally:
            await store.aclose()

    return start
