"""What is kept of a run: itself, the model's turns, the calls of each turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from beckon_agent.model.types import Message, Usage
from beckon_agent.runs import Ending

RunStatus = Literal["queued", "running", "suspended", "completed", "incomplete", "failed", "cancelled"]
"""`suspended` waits for an approval or for a tool that answers later; nobody holds it."""

FINAL: frozenset[RunStatus] = frozenset({"completed", "incomplete", "failed", "cancelled"})

CallState = Literal["open", "approval", "sent", "accepted", "client", "done"]
"""`open` may be sent, `approval` waits for a person, `sent` may have had its effect, `accepted` will be
answered later by an event, `client` is the client's to make, `done` has its result."""

Decision = Literal["approved", "denied"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run before its first step.

    `owner` is the principal's id, empty for anonymous. `input` are the messages that it adds to its
    conversation, in front of which stand those of `previous` (a run) or of `conversation`. `request` is
    all else that its face needs to go on with it: a JSON object. A run that is not `kept` is deleted
    when it ends.
    """

    id: str
    owner: str
    agent: str
    face: str
    input: Sequence[Message]
    request: Mapping[str, object] = field(default_factory=dict)
    previous: str | None = None
    conversation: str | None = None
    background: bool = False
    kept: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun(NewRun):
    """A run as it is stored; times are seconds since the epoch.

    `holder` is the process that works on it, until `held_until`. `error` has the members `code` and
    `message`.
    """

    status: RunStatus
    created_at: float
    ended_at: float | None = None
    ending: Ending | None = None
    usage: Usage | None = None
    error: Mapping[str, str] | None = None
    holder: str | None = None
    held_until: float | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended.

    `added` are the messages that stand behind its input for whoever goes on from it. Its conversation gets
    both, and neither where `added` is `None`. `error` has the members `code` and `message`. A run that is
    not kept is deleted at once, unless it `lingers` for those who follow it elsewhere: then whoever ends
    it deletes it shortly after, or `purge` does.
    """

    status: RunStatus
    ending: Ending | None = None
    usage: Usage | None = None
    error: Mapping[str, str] | None = None
    added: Sequence[Message] | None = None
    lingers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """One answer of the model; its calls are kept as `StoredCall`s. `sent` is as in `Turn`.

    `written` are the calls as the model wrote them, each with `id`, `name`, `arguments` (a text) and `extra`.
    `asked` is what it was asked: `model`, a name, and how many tools it takes, `limit`, with the digests of
    two materials: `system`, a message, and `tools`, a list of digests. `written` and `asked` are `None` in
    turns that were stored before anybody kept them.
    """

    step: int
    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    sent: tuple[str, ...] = ()
    written: Sequence[Mapping[str, object]] | None = None
    asked: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCall:
    """One call of a turn.

    `event_id` is the id of its CloudEvent, the same at every attempt, and unique in the store.
    `id`, `name` and `extra` are the model's, as in `ToolCall`; `arguments` are those that are sent, or
    were written by the model where the call is refused. `deadline` is when a late answer is late.
    A decision makes a call `open` again; one that was denied is refused and never sent.
    """

    event_id: str
    step: int
    number: int
    id: str
    name: str
    arguments: Mapping[str, object]
    extra: Mapping[str, object] = field(default_factory=dict)
    state: CallState = "open"
    result: object = None
    failed: bool = False
    seconds: float | None = None
    deadline: float | None = None
    decision: Decision | None = None
    decided_by: str | None = None
    decision_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """All that a run has done so far, in its order."""

    turns: Sequence[StoredTurn]
    calls: Sequence[StoredCall]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A thread of messages that runs add to; `created_at` in seconds since the epoch."""

    id: str
    owner: str
    metadata: Mapping[str, str]
    created_at: float


@dataclass(frozen=True, slots=True)
class Taken:
    """Whether a limit had room; `retry_after` are the seconds until it will."""

    allowed: bool
    retry_after: float = 0.0
