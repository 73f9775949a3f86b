"""The types of a run: limits, options, model, and emitted events."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from beckon_agent.core.call_budget import ROOT, CallBudget
from beckon_agent.core.model_types import Message
from beckon_agent.core.run_events import StreamItem
from beckon_contract.resources.agent_terms import NO_TERMS, Terms
from beckon_contract.resources.tools import Tool


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one run: model requests, seconds, total tokens, parallel calls.

    `calls_per_turn` is the number of calls allowed in one answer of the model. The same call is made until it
    has failed or had the same result `repeated_calls` times in a row. Calls beyond these two are answered
    `denied`.

    `call_timeout` is in seconds, for tools without a timeout of their own; such a tool has `late_seconds` for
    its answer once it has taken a call to answer it later. `tools` is the number of declarations allowed in
    one model request, fewer if the provider takes fewer.
    """

    steps: int = 16
    seconds: float = 300.0
    tokens: int | None = None
    parallel_calls: int = 8
    result_chars: int = 20_000
    call_timeout: float = 30.0
    tools: int = 64
    late_seconds: float = 86_400.0
    calls_per_turn: int = 64
    repeated_calls: int = 5


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A function brought and run by the client.

    The agent hands calls of it back.
    """

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one request, in addition to its agent's own.

    `instructions` come after the agent's prompt for this run alone. `first_choice` is the `tool_choice` of
    the run's first answer: with it in every request, the run would never end. `allowed_tools` are the only
    ones that may be called, `max_tool_calls` is the number of calls allowed. `chain` is the run's depth and
    budget among agents calling each other.
    """

    use_tools: bool = True
    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    extra: Mapping[str, object] = field(default_factory=dict)
    instructions: str = ""
    first_choice: object = None
    allowed_tools: tuple[str, ...] | None = None
    max_tool_calls: int | None = None
    chain: CallBudget = ROOT
    client_tools: tuple[ClientTool, ...] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent as the API names it: prompt, limits, terms of use.

    `pinned` are names of EventTypes, or of tools as models see them, that the model is always sent.
    """

    name: str
    namespace: str
    system_prompt: str
    limits: Limits
    terms: Terms = NO_TERMS
    pinned: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The CloudEvents source of this agent's calls."""
        return f"/beckon/agents/{self.namespace}/{self.name}"


class Model(Protocol):
    """A source of answers to a conversation.

    The last item of its stream is a `Turn`.
    """

    @property
    def name(self) -> str:
        """The public name of the model."""
        ...

    async def tool_limit(self) -> int:
        """Return the number of declarations allowed in one request.

        Raises `ModelError`.
        """
        ...

    def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        """Yield the pieces of one answer."""
        ...
