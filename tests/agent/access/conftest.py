"""An issuer of tokens, and a session to ask it by."""

from collections.abc import AsyncIterator

import aiohttp
import pytest_asyncio

from tests.agent.access.issuer import Issuer, issuing


@pytest_asyncio.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as opened:
        yield opened


@pytest_asyncio.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuing() as running:
        yield running
