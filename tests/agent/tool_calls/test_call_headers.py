"""What the agent says of a tool beside the call, in headers for the shim."""

from collections.abc import AsyncIterator
from dataclasses import replace

import aiohttp
import pytest_asyncio

from beckon_agent.tool_calls.caller import Dispatcher
from tests.agent.tool_calls.test_broker import TOOL, a_call, replying
from tests.shim.support import Server, serving


@pytest_asyncio.fixture
async def shim() -> AsyncIterator[Server]:
    """A server that answers as a test says where the agent expects the shim."""
    async with serving() as server:
        yield server


async def test_the_shim_learns_what_the_tool_answers(session: aiohttp.ClientSession, shim: Server) -> None:
    shim.behaviour = replying(b"1")
    tool = replace(TOOL, reply="any", reply_attribute="responseid")
    for each in (tool, TOOL):
        await Dispatcher(session, shim.url).send(replace(a_call(), tool=each))

    named = ("beckon-reply", "beckon-reply-attribute")
    assert [[posted.headers.get(name) for name in named] for posted in shim.posts] == [
        ["any", "responseid"],
        [None, None],
    ]
