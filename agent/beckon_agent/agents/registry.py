"""The registry of agents by their names in the API."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from beckon_agent.core.run_types import Agent, Model
from beckon_agent.tools.catalogue import CatalogueSource
from beckon_agent.tools.select import Chooser, FittingTools
from beckon_contract.knative.eventtypes import EventType


@dataclass(frozen=True, slots=True)
class AgentHandle:
    """Everything a run of one agent works with.

    `name` is `model` in the API. A handle never changes: a changed agent gets a new one, and runs in
    progress stay with theirs. `held` is entered for the time of a run, so that nothing it needs is closed
    meanwhile. `chooser` selects the tools sent to the model. `event_types` returns the present EventTypes
    that are no tools, for clients that read events.
    """

    name: str
    agent: Agent
    model: Model
    catalogue: CatalogueSource
    held: Callable[[], AbstractContextManager[object]] = nullcontext
    chooser: Chooser = field(default_factory=FittingTools)
    event_types: Callable[[], Sequence[EventType]] = tuple


@dataclass(frozen=True, slots=True)
class UnavailableAgent:
    """An existing agent unable to take requests.

    `reason` is in CamelCase; `message` says what to do, or where to read it.
    """

    name: str
    reason: str
    message: str


class AgentRegistry(Protocol):
    """The agents of this service."""

    @property
    def complete(self) -> bool:
        """True if all agents and tools were read once. Before that, an unknown agent may exist."""
        ...

    @property
    def default(self) -> str:
        """The name of the default agent, for requests without one."""
        ...

    @property
    def tools(self) -> int:
        """The number of tools."""
        ...

    def find(self, name: str) -> AgentHandle | UnavailableAgent | None:
        """Return the agent of this name."""
        ...

    def hosted(self) -> Sequence[AgentHandle]:
        """Return the agents taking requests, the default one first."""
        ...

    async def watch(self) -> None:
        """Keep all of it up to date until cancelled."""
        ...


class SingleAgent:
    """The registry without a cluster: one agent from the settings. `watch` keeps its tools up to date."""

    complete = True

    def __init__(self, agent: AgentHandle, watch: Callable[[], Awaitable[object]]) -> None:
        self._agent = agent
        self._watch = watch

    @property
    def default(self) -> str:
        """The name of the agent."""
        return self._agent.name

    @property
    def tools(self) -> int:
        """The number of its tools."""
        return len(self._agent.catalogue.current.tools)

    def find(self, name: str) -> AgentHandle | None:
        """Return the agent if the name is its own."""
        return self._agent if name == self._agent.name else None

    def hosted(self) -> Sequence[AgentHandle]:
        """Return the agent."""
        return (self._agent,)

    async def watch(self) -> None:
        """Keep its tools up to date until cancelled."""
        await self._watch()
