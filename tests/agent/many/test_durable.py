"""Runs over many tools that another process goes on with: it sends what the first one would have sent."""

from dataclasses import replace

import pytest

from beckon_agent.agents.registry import AgentHandle, SingleAgent
from beckon_agent.core.run_events import ApprovalRequested, CallFinished, RunEvent, RunFinished, RunSuspended
from beckon_agent.tools.select import FittingTools
from beckon_contract.catalogue.builder import Catalogue
from tests.agent.durable.conftest import StartEngines, engines
from tests.agent.durable.crashing import Crashing
from tests.agent.durable.engines import Engines, everything, text
from tests.agent.many.plenty import LIMIT, SETUP, filler, sent, surround
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH
from tests.patience import eventually

__all__ = ["engines"]  # the fixture

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "Rename the contracts, and archive it"
SEARCH = asks_for(("find_tools", {"query": "say something again"}))
ECHO = asks_for(("test_echo", {"text": "hi"}))


def forget(shared: Engines) -> None:
    """Let the agent choose as another process would, which has sent nothing yet."""
    registry = shared.agent.service.registry
    hosted = registry.find("beckon")
    assert isinstance(hosted, AgentHandle)
    anew = AgentHandle(hosted.name, hosted.agent, hosted.model, hosted.catalogue, chooser=FittingTools())
    shared.agent.service.registry = SingleAgent(anew, registry.watch)


def finished(events: list[RunEvent]) -> list[str]:
    return [event.name for event in events if isinstance(event, CallFinished)]


# Notes of such a run: a turn and the answer of its search, a turn, its call and the answer, a turn, the end.
@pytest.mark.parametrize("notes", range(7))
async def test_a_process_that_dies_is_replaced_by_one_that_sends_the_same(
    engines: StartEngines, notes: int
) -> None:
    script = [SEARCH, ECHO, says("Done.")]
    again = {0: SEARCH, 2: ECHO, 5: says("Done.")}  # an answer that was not noted is asked for again
    if notes in again:
        script.insert(script.index(again[notes]) if notes < 5 else 3, again[notes])
    async with engines(*script, setup=SETUP) as shared:
        surround(shared.agent, 600)
        dying = Crashing(shared.store, notes, lands=False)
        async with shared.running(dying) as first:
            run = await first.start(shared.ask(QUESTION))
            await eventually(lambda: _is(dying.dead))
        forget(shared)
        async with shared.running() as second:
            events = await everything(second, run.id)

        assert isinstance(events[-1], RunFinished)
        assert text(events).endswith("Done.")
        assert finished(events) == ["find_tools", "test_echo"]
        assert BENCH.calls == ["hi"]
        turns = [
            sent_request for n, sent_request in enumerate(shared.agent.requests) if not _is_repeated(n, notes)
        ]
        first_names, *others = map(sent, turns)
        assert "test_echo" not in first_names
        assert others == [[*first_names, *others[0][len(first_names) :]]] * 2
        for repeated in (n for n in range(len(shared.agent.requests)) if _is_repeated(n, notes)):
            assert sent(shared.agent.requests[repeated]) == sent(shared.agent.requests[repeated - 1])


def _is_repeated(request: int, notes: int) -> bool:
    return request == {0: 1, 2: 2, 5: 3}.get(notes)


async def _is(value: bool) -> bool:
    return value


async def test_a_run_that_waited_goes_on_with_the_tools_it_had_though_others_came_and_went(
    engines: StartEngines,
) -> None:
    async with engines(asks_for(("test_danger", {})), says("Done."), setup=SETUP) as shared:
        surround(shared.agent, 600)
        async with shared.running() as engine:
            run = await engine.start(shared.ask(QUESTION))
            events = await everything(engine, run.id)
        (sent_request,) = [event for event in events if isinstance(event, ApprovalRequested)]
        assert isinstance(events[-1], RunSuspended)
        before = sent(shared.agent.requests[0])
        gone, *rest = before[1:]
        tools = {name: tool for name, tool in shared.agent.catalogue.current.tools.items() if name != gone}
        tools |= {
            name: replace(filler(29), name=name) for name in (f"a{n}_rename_contract" for n in range(90))
        }
        shared.agent.catalogue.current = Catalogue(tools)
        forget(shared)

        async with shared.running() as another:
            await another.decide_call(sent_request.event_id, "approved", by="ann")
            await everything(another, run.id, wait=True)

        after = sent(shared.agent.requests[1])
        assert after[0] == "find_tools"
        assert after[1 : len(rest) + 1] == rest
        assert len(after) <= LIMIT
        assert BENCH.calls == ["danger"]
