"""The registry of agents, by the names that clients use."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

from beckon_agent.core.run_types import Agent, Model
from beckon_agent.tools.catalogue import CatalogueSource
from beckon_agent.tools.select import Chooser, FittingTools


@dataclass(frozen=True, slots=True)
class AgentHandle:
    """All that a run of one agent works with; `name` is `model` in the API.

    It stays as it is: an agent that is changed becomes another one, and runs that have begun keep theirs.
    `held` is entered for the time of a run, so that nothing the run needs is closed under it. `chooser`
    says which of many tools the model is sent.
    """

    name: str
    agent: Agent
    model: Model
    catalogue: CatalogueSource
    held: Callable[[], AbstractContextManager[object]] = nullcontext
    chooser: Chooser = field(default_factory=FittingTools)


@dataclass(frozen=True, slots=True)
class UnavailableAgent:
    """An agent that exists and cannot take requests: the CamelCase reason, and where to read what to do."""

    name: str
    reason: str
    message: str


class AgentRegistry(Protocol):
    """The agents of this service."""

    @property
    def complete(self) -> bool:
        """Whether all agents and tools were read once; before that, one that is missing may exist."""
        ...

    @property
    def default(self) -> str:
        """The name of the agent that is meant where a request names none."""
        ...

    @property
    def tools(self) -> int:
        """How many tools there are."""
        ...

    def find(self, name: str) -> AgentHandle | UnavailableAgent | None:
        """Return the agent of this name."""
        ...

    def hosted(self) -> Sequence[AgentHandle]:
        """Return the agents that take requests, the default one first."""
        ...

    async def watch(self) -> None:
        """Keep all of it up to date until cancelled."""
        ...


class SingleAgent:
    """The roster without a cluster: one agent, as the settings describe it, and what keeps its tools."""

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
        """How many tools it has."""
        return len(self._agent.catalogue.current.tools)

    def find(self, name: str) -> AgentHandle | None:
        """Return the agent if that is its name."""
        return self._agent if name == self._agent.name else None

    def hosted(self) -> Sequence[AgentHandle]:
        """Return the agent."""
        return (self._agent,)

    async def watch(self) -> None:
        """Keep its tools up to date until cancelled."""
        await self._watch()
