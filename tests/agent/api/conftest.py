"""A service that several modules of this folder use."""

from collections.abc import AsyncIterator

import aiohttp
import pytest_asyncio

from beckon_agent.auth.authentication import make_authenticator
from beckon_agent.auth.options import AccessOptions
from tests.agent.auth.closed_service import ClosedService, closed_service, terms
from tests.agent.event_platform import EventPlatform


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def service(platform: EventPlatform) -> AsyncIterator[ClosedService]:
    """An open service with a store."""
    async with aiohttp.ClientSession() as session:
        door = make_authenticator(AccessOptions(host="127.0.0.1"), session)
        async with closed_service(platform, {"beckon": terms()}, door) as made:
            yield made
