"""The servers of every test of the shim."""

from collections.abc import AsyncIterator

import pytest

from beckon_shim.service import WaitTimes
from tests.shim.support import Posted, Server, Shim, serving, shim_in_front_of


@pytest.fixture
async def broker() -> AsyncIterator[Server]:
    async with serving() as server:
        yield server


@pytest.fixture
async def shim(broker: Server) -> AsyncIterator[Shim]:
    async with shim_in_front_of(broker.url, waits=WaitTimes(after_dead_letter=0.1)) as running:
        yield running


@pytest.fixture
def echoing(broker: Server, shim: Shim) -> Server:
    """A Broker whose tool replies with the data of the call, before the acknowledgement."""

    async def echo(posted: Posted) -> None:
        assert await shim.reply(posted.token, posted.body) == 202

    broker.behaviour = echo
    return broker
