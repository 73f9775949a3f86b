"""One site for all who walk."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.agent.store.postgres import Server, server
from tests.e2e.crash.site import Site, running_site


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server for this session."""
    with server() as running:
        yield running


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def site(tmp_path_factory: pytest.TempPathFactory, postgres: Server) -> AsyncIterator[Site]:
    """The site."""
    async with running_site(tmp_path_factory.mktemp("site"), postgres) as running:
        yield running
