"""Tests of long tools run on both databases, but for those about what clients see."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.agent.long.rig import Rig, running_rig
from tests.agent.store.conftest import (  # noqa: F401  # fixtures, which pytest finds by their names here
    database,
    like,
    running,
    url,
)


@pytest_asyncio.fixture
async def rig(tmp_path_factory: pytest.TempPathFactory, url: str) -> AsyncIterator[Rig]:  # noqa: F811  # the fixture of that name
    """A platform with a long tool; agents are started by the test."""
    async with running_rig(tmp_path_factory.mktemp("manifests"), url) as running_one:
        yield running_one
