"""What every face works with: the agents, and how to start a run of one."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from beckon_agent.calls import Caller
from beckon_agent.catalogue.source import CatalogueSource
from beckon_agent.loop import Model, Run
from beckon_agent.metrics import Metrics
from beckon_agent.model.types import Message
from beckon_agent.runs import Agent, CallFinished, Options, RunEvent, RunFinished


class TooManyRuns(Exception):
    """The service has as many runs under way as it may have."""


@dataclass(slots=True)
class Service:
    """The agents of this process, their model, their tools; `running` counts the runs under way."""

    agents: Mapping[str, Agent]
    model: Model
    catalogue: CatalogueSource
    caller: Caller
    metrics: Metrics
    max_runs: int
    running: int = field(default=0, init=False)
    draining: bool = field(default=False, init=False)

    async def run(
        self, agent: Agent, messages: Sequence[Message], options: Options
    ) -> AsyncGenerator[RunEvent]:
        """Run an agent over a conversation; raises `TooManyRuns` before anything has happened."""
        if self.running >= self.max_runs or self.draining:
            raise TooManyRuns
        run = Run(agent, self.model, self.catalogue, self.caller, options)
        self.running += 1
        ending = "failed"
        try:
            async with aclosing(run.events(messages)) as events:
                async for event in events:
                    match event:
                        case CallFinished():
                            self.metrics.call(event)
                        case RunFinished():
                            ending = event.ending
                    yield event
        finally:
            self.running -= 1
            self.metrics.run(agent.name, ending)
