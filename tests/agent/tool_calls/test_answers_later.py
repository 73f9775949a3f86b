"""Late answers: only a caller that accepts them gets an acceptance."""

from dataclasses import replace

import aiohttp

from beckon_agent.tool_calls.caller import Dispatcher
from beckon_agent.tool_calls.outcome import CallOutcome
from tests.agent.tool_calls.test_broker import REPLY, a_call, answering, error
from tests.agent.tool_calls.test_direct import a_call as direct_call
from tests.shim.support import serving

ACCEPTED = {**REPLY, "ce-beckonstate": "accepted"}


async def test_a_call_that_may_be_answered_later_says_so_to_the_shim() -> None:
    async with aiohttp.ClientSession() as session, serving() as shim:
        shim.behaviour = answering(202, b"", **ACCEPTED)
        dispatcher = Dispatcher(session, shim.url)

        assert await dispatcher.send(replace(a_call(), may_be_late=True)) == CallOutcome(None, later=True)
        assert error(await dispatcher.send(a_call()))["reason"] == "undeliverable"

        preferences = [posted.headers["prefer"].split(", ")[0] for posted in shim.posts]
        assert preferences[0] == "respond-async"
        assert preferences[1].startswith("wait=")


async def test_a_tool_that_is_called_directly_cannot_answer_later() -> None:
    async with aiohttp.ClientSession() as session, serving() as tool:
        tool.behaviour = answering(200, b"", **ACCEPTED)
        call = replace(direct_call(tool.url), may_be_late=True)

        failure = error(await Dispatcher(session, "http://127.0.0.1:9").send(call))

        assert failure["reason"] == "timeout"
        assert "through a Broker" in failure["message"]
