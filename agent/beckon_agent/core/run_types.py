"""The types of a run: its limits, its options, its model, and the events that it emits."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from beckon_agent.core.call_budget import ROOT, CallBudget
from beckon_agent.core.model_types import Message, ReasoningDelta, StreamItem, TextDelta, Usage
from beckon_contract.agent_terms import NO_TERMS, Terms
from beckon_contract.tools import CallOrigin, Tool

Ending = Literal[
    "stop",
    "length",
    "step_limit",
    "time_limit",
    "token_limit",
    "content_filter",
    "client_call",
    "incomplete",
]
"""`incomplete` is the ending with an answer that broke off; the others name a limit, or who goes on."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far one run may go: model requests, seconds, tokens in all, calls side by side.

    `calls_per_turn` is how many calls one answer of the model may make. The same call is made until it has
    failed or had the same result `repeated_calls` times in a row. What is above is answered `denied`.

    `call_timeout` is in seconds, for tools that name none of their own; `late_seconds` is what such a
    tool has for its answer once it has taken a call to answer it later. `tools` is how many
    declarations one model request may have, fewer where the provider takes fewer.
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
    """A function that the client brings and runs itself: the agent hands calls of it back."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Options:
    """What one request may ask of the model, beyond what its agent says.

    `instructions` stand behind the agent's prompt for this run alone. `first_choice` is the `tool_choice`
    of the run's first answer: kept up, it would never end. `allowed_tools` are the only ones that may be
    called, `max_tool_calls` how many calls may be made. `chain` is where the run stands among agents that
    call each other.
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
    """One agent as the API names it: its prompt, its limits, and on what terms it may be used.

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
        """The CloudEvents source of the calls that this agent makes."""
        return f"/beckon/agents/{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class CallStarted:
    """The model asked for a call; `arguments` as they are sent, or as it wrote them if it is refused."""

    id: str
    name: str
    arguments: Mapping[str, object]
    origin: CallOrigin = "api"


@dataclass(frozen=True, slots=True)
class CallProgressed:
    """A tool reports how far a call has come: so much of `total`, or of nobody knows how much.

    It is told to those who listen while it happens, and to nobody later: it is not stored.
    """

    id: str
    name: str
    done: float
    total: float | None
    message: str


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A tool call has its answer: the tool's data, or an error object as in `failures`.

    `tokens` are those that the reply says it cost, which those of an agent do.
    """

    id: str
    name: str
    result: object
    failed: bool
    seconds: float
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The last event of every run; `messages` are what the run added to the conversation.

    `usage` is that of its own model; `elsewhere` are the tokens that agents used which it called.
    """

    ending: Ending
    usage: Usage | None
    messages: tuple[Message, ...]
    elsewhere: int = 0


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A call waits for a person; `event_id` is what a decision names, `id` the model's id of the call."""

    event_id: str
    id: str
    name: str
    arguments: Mapping[str, object]
    origin: CallOrigin = "api"


@dataclass(frozen=True, slots=True)
class ClientCallRequested:
    """A call of a tool that the client brought; the run ends with it, and the client answers in a new one."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class RunSuspended:
    """Nothing more happens until a decision or a late answer comes; then the run goes on."""


RunEvent = (
    TextDelta
    | ReasoningDelta
    | CallStarted
    | ApprovalRequested
    | ClientCallRequested
    | CallProgressed
    | CallFinished
    | RunSuspended
    | RunFinished
)


class Model(Protocol):
    """Anything that answers a conversation; the last item of its stream is a `Turn`."""

    @property
    def name(self) -> str:
        """What people know it by."""
        ...

    async def tool_limit(self) -> int:
        """Return how many declarations one request may have; raises `ModelError`."""
        ...

    def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        """Yield the pieces of one answer."""
        ...
