"""One event platform for each module that asks for it, and agents in front of it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.agent.event_platform import EventPlatform, described, event_platform
from tests.agent.running_agent import RunningAgent, Setup, running_agent
from tests.agent.scripted_model import Script
from tests.agent.tools_for_tests import BENCH, TOOLS
from tests.shim.support import Posted, serving

CLOSED = "http://127.0.0.1:9"


class StartAgent(Protocol):
    """Starts an agent with a scripted model."""

    def __call__(
        self, *script: Script, setup: Setup | None = None
    ) -> AbstractAsyncContextManager[RunningAgent]:
        """Serve until the end of the block."""
        ...


@pytest_asyncio.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """A client of aiohttp, as what calls a shim or an issuer is given one."""
    async with aiohttp.ClientSession() as opened:
        yield opened


async def say_it_plainly(call: Posted) -> web.Response:
    """Answer a call as a service without the SDK may: with a reply event whose data is text."""
    attributes = {
        "specversion": "1.0",
        "id": call.headers["ce-id"],
        "source": "/plain",
        "type": "plain.reply",
    }
    headers = {f"ce-{name}": value for name, value in attributes.items()}
    headers |= {"ce-replyid": call.token, "content-type": "text/plain; charset=utf-8"}
    return web.Response(body="schöne Grüße".encode(), headers=headers)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EventPlatform]:
    """The tools of the tests, one that is dead, and one that is called directly and has no address."""
    dead = described("test.dead", "dead")
    direct = described("test.direct", "nowhere", dispatch="direct")[:1]
    plain = described("test.plain", "plain")
    folder = tmp_path_factory.mktemp("manifests")
    async with serving() as by_hand:
        by_hand.behaviour = say_it_plainly
        addresses = {"dead": CLOSED, "plain": by_hand.url}
        async with event_platform(folder, TOOLS, addresses, *dead, *direct, *plain) as running:
            yield running


@pytest.fixture
def start_agent(platform: EventPlatform) -> Iterator[StartAgent]:
    """Start an agent in front of the platform; its tools have forgotten what they saw."""
    BENCH.reset()

    def start(*script: Script, setup: Setup | None = None) -> AbstractAsyncContextManager[RunningAgent]:
        return running_agent(platform.shim, platform.folder, *script, setup=setup)

    yield start
    BENCH.gate.set()
