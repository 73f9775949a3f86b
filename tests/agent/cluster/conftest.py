"""An API server and a model server for the tests of an agent in a cluster."""

from collections.abc import AsyncIterator

import pytest

from tests.agent.model_server import ModelServer, model_server
from tests.sources.api_server import ApiServer, api_server


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with api_server() as running:
        yield running


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    async with model_server() as running:
        yield running
