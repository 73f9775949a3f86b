"""Processes that work on the same runs, as far as one process of a test can be several."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.core.records import NewRun
from beckon_agent.core.run_events import RunEvent, TextDelta
from beckon_agent.core.run_types import Options
from beckon_agent.durable.base import Ask
from beckon_agent.durable.engine import EnginePace, RunEngine
from beckon_agent.store.base import Store
from tests.agent.running_agent import RunningAgent, user

QUICK = EnginePace(hold=0.5, beat=0.1, look=0.05)


@dataclass(frozen=True)
class Engines:
    """What the engines of a test have in common."""

    agent: RunningAgent
    store: Store

    @asynccontextmanager
    async def running(self, store: Store | None = None, pace: EnginePace = QUICK) -> AsyncIterator[RunEngine]:
        """Run an engine to the end of the block; `store` may stand between it and the real one."""
        engine = RunEngine(store or self.store, self.agent.service, f"test-{secrets.token_hex(4)}", pace)
        serving = asyncio.create_task(engine.serve())
        try:
            yield engine
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    def ask(self, text: str = "go", *, background: bool = True, previous: str | None = None) -> Ask:
        """Return a question for the agent."""
        hosted = self.agent.service.registry.find("beckon")
        assert isinstance(hosted, AgentHandle)
        run = NewRun(
            id=f"run_{secrets.token_hex(8)}",
            owner="ann",
            agent="beckon",
            face="test",
            input=[user(text)],
            previous=previous,
            background=background,
        )
        return Ask(run, hosted, Options())


async def everything(engine: RunEngine, run_id: str, *, wait: bool = False) -> list[RunEvent]:
    """Return all events of a run; their numbers are without a gap."""
    numbered = [item async for item in engine.follow(run_id, wait=wait)]
    assert [number for number, _ in numbered] == list(range(1, len(numbered) + 1))
    return [event for _, event in numbered]


def text(events: list[RunEvent]) -> str:
    """Return what the agent said."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))
