"""Engines over a real store, in front of a real event platform, with a scripted model."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from beckon_agent.store.sql.open import open_store
from tests.agent.conftest import StartAgent
from tests.agent.durable.engines import Engines
from tests.agent.running_agent import Setup
from tests.agent.scripted_model import Script

StartEngines = Callable[..., AbstractAsyncContextManager[Engines]]


@pytest.fixture
def engines(start_agent: StartAgent, tmp_path: Path) -> StartEngines:
    """Makes engines that share an agent, its model's script and a store."""

    @asynccontextmanager
    async def start(*script: Script, setup: Setup | None = None) -> AsyncIterator[Engines]:
        async with start_agent(*script, setup=setup) as agent:
            store = await open_store(f"sqlite:///{tmp_path / 'store.db'}")
            try:
                yield Engines(agent, store)
            finally:
                await store.aclose()

    return start
