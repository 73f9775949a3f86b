"""An issuer of tokens."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.agent.auth.issuer import Issuer, issuing


@pytest_asyncio.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuing() as running:
        yield running
