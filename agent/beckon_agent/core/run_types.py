"""The types of a run: limits, options, budget, model, and emitted events.

The budget is the depth and the tokens of agents calling each other. Both travel as extension attributes of
the events between them.
"""

import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from beckon_agent.core.model_types import Message, ToolCall, Usage
from beckon_agent.core.run_events import StreamItem
from beckon_contract.cloudevents.events import AttributeValue, CloudEvent, EventError
from beckon_contract.cloudevents.extensions import BUDGET, DEPTH, USED
from beckon_contract.resources.agent_terms import NO_TERMS, Terms
from beckon_contract.resources.tools import Tool

_INTEGER = re.compile(r"-?\d{1,10}", re.ASCII)
_MOST = 2**31 - 1  # what an Integer of CloudEvents holds


@dataclass(frozen=True, slots=True)
class CallBudget:
    """Depth and token budget of a run in a chain of agents.

    `depth` 0 is a run begun by a person; `budget` is `None` without a limit.
    """

    depth: int = 0
    budget: int | None = None

    @classmethod
    def from_event(cls, event: CloudEvent) -> "CallBudget":
        """Return the depth and budget of a run started by this event.

        Raises `EventError` for an attribute that is no integer.
        """
        return cls(max(0, _read_integer(event, DEPTH) or 0), _read_integer(event, BUDGET))

    def token_limit(self, limit: int | None) -> int | None:
        """Return the token limit of a run with its own `limit`.

        That is the lower one of `limit` and `budget`, and `None` without either.
        """
        limits = [tokens for tokens in (limit, self.budget) if tokens is not None]
        return min(limits, default=None)

    def to_attributes(
        self, limit: int | None, usage: Usage | None, elsewhere: int = 0, *, shares: int = 1
    ) -> dict[str, AttributeValue]:
        """Return the attributes of an event sent by a run.

        `usage` is its own use of tokens so far. The run's limit is for the run and for all that it calls:
        `elsewhere` are the tokens of those, and the rest is shared evenly by the `shares` calls that have no
        answer yet (decision 0026).
        """
        attributes: dict[str, AttributeValue] = {DEPTH: self.depth + 1}
        tokens = self.token_limit(limit)
        if tokens is not None:
            remaining = max(0, tokens - _total_tokens(usage) - elsewhere)
            attributes[BUDGET] = min(_MOST, remaining // shares)
        return attributes


ROOT = CallBudget()

_sending: ContextVar[Mapping[str, AttributeValue]] = ContextVar("sending")


@contextmanager
def propagate_attributes(attributes: Mapping[str, AttributeValue]) -> Iterator[None]:
    """Set the attributes of events sent by this task; `CallBudget.to_attributes` makes them."""
    token = _sending.set(attributes)
    try:
        yield
    finally:
        _sending.reset(token)


def current_attributes() -> Mapping[str, AttributeValue]:
    """Return the attributes of an event sent now. Outside of any run the event begins a chain."""
    return _sending.get(ROOT.to_attributes(None, None))


def usage_attribute(usage: Usage | None, elsewhere: int = 0) -> dict[str, AttributeValue]:
    """Return the attribute for an answer's total token cost.

    The mapping is empty if no tokens were counted.
    """
    uncounted = usage is None and not elsewhere
    return {} if uncounted else {USED: min(_MOST, _total_tokens(usage) + elsewhere)}


def reported_cost(reply: CloudEvent) -> int:
    """Return the token cost reported by a reply.

    It is 0 without the attribute, or if the attribute is no integer.
    """
    try:
        return max(0, _read_integer(reply, USED) or 0)
    except EventError:
        return 0


def _total_tokens(usage: Usage | None) -> int:
    return 0 if usage is None else usage.total_tokens


def _read_integer(event: CloudEvent, name: str) -> int | None:
    """Read an integer attribute, as text or as a number.

    Text comes from a header. Return `None` if it is absent; raises `EventError` for anything else than an
    integer.
    """
    value = event.extensions.get(name)
    if value is None:
        return None
    text = str(value)
    if isinstance(value, bool) or not _INTEGER.fullmatch(text):
        raise EventError(f"the attribute {name!r} is no integer: {text[:20]!r}")
    return int(text)


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


REQUESTED_CALL_SECONDS = 86_400.0
"""The time limit of a call requested by a client: no run ends it, and its tool's own time is shorter."""


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A function brought and run by the client. The agent hands calls of it back."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of one request, in addition to its agent's own.

    `instructions` come after the agent's prompt for this run alone. `first_choice` is the `tool_choice` of
    the run's first answer: with it in every request, the run would never end. `allowed_tools` are the only
    ones that may be called, `max_tool_calls` is the number of calls allowed. `chain` is the run's depth and
    budget among agents calling each other. A run with a `requested_call` makes this one call and ends: its
    model is not used.
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
    requested_call: ToolCall | None = None


@dataclass(frozen=True, slots=True)
class Agent:
    """One agent as the API names it: prompt, limits, terms of use.

    `pinned` are names of EventTypes, or of tools as models see them, that the model is always sent.
    `output_schema` is the JSON Schema of answers to requests without a format of their own. With
    `publish_prompt`, MCP clients may read the system prompt.
    """

    name: str
    namespace: str
    system_prompt: str
    limits: Limits
    terms: Terms = NO_TERMS
    pinned: tuple[str, ...] = ()
    output_schema: Mapping[str, object] | None = None
    publish_prompt: bool = False

    @property
    def source(self) -> str:
        """The CloudEvents source of this agent's calls."""
        return f"/beckon/agents/{self.namespace}/{self.name}"


class Model(Protocol):
    """A source of answers to a conversation. The last item of its stream is a `Turn`."""

    @property
    def name(self) -> str:
        """The public name of the model."""
        ...

    async def tool_limit(self) -> int:
        """Return the number of declarations allowed in one request. Raises `ModelError`."""
        ...

    def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        """Yield the pieces of one answer."""
        ...
