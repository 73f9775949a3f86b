"""An open service with a store, and the SDK's client in front of it."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from beckon_agent.auth.authentication import make_authenticator
from beckon_agent.auth.options import AccessOptions
from tests.agent.a2a.sdk_client import SdkClient, connected_client
from tests.agent.auth.closed_service import ClosedService, closed_service, terms
from tests.agent.event_platform import EventPlatform
from tests.agent.tools_for_tests import BENCH

BINDINGS = [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")]


@pytest_asyncio.fixture(loop_scope="module")
async def service(platform: EventPlatform) -> AsyncIterator[ClosedService]:
    """An open service with two agents; the tools have forgotten what they saw."""
    BENCH.reset()
    async with aiohttp.ClientSession() as session:
        checks = make_authenticator(AccessOptions(host="127.0.0.1"), session)
        async with closed_service(platform, {"beckon": terms(), "other": terms()}, checks) as made:
            yield made
    BENCH.gate.set()


@pytest_asyncio.fixture(params=BINDINGS, ids="-".join, loop_scope="module")
async def client(service: ClosedService, request: pytest.FixtureRequest) -> AsyncIterator[SdkClient]:
    """The client of the default agent, over each binding."""
    async with connected_client(str(service.http.base_url), binding=request.param) as connected:
        yield connected


@pytest_asyncio.fixture(loop_scope="module")
async def rpc(service: ClosedService) -> AsyncIterator[SdkClient]:
    """The client of the default agent, over the first binding of its card."""
    async with connected_client(str(service.http.base_url)) as connected:
        yield connected
