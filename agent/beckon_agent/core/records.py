"""The records of the store: runs, turns, calls, conversations, and the use of limits."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from beckon_agent.core.model_types import NO_DETAILS, AnswerDetails, Message, Usage
from beckon_agent.core.run_events import Ending
from beckon_contract.inputs import FORM, METHODS
from beckon_contract.resources.tools import CallOrigin

RunStatus = Literal["queued", "running", "suspended", "completed", "incomplete", "failed", "cancelled"]
"""`suspended` waits for an approval, for input, or for a tool that answers later; no process holds it."""

FINAL: frozenset[RunStatus] = frozenset({"completed", "incomplete", "failed", "cancelled"})

CallState = Literal["open", "approval", "sent", "accepted", "input", "client", "done"]
"""`open` may be sent, `approval` waits for a person, `sent` may have had its effect, `accepted` will be
answered later by an event, `input` waits for a person's input, `client` is the client's to make, `done` has
its result."""

Decision = Literal["approved", "denied"]

MCP_FACE = "mcp"
"""The face of runs whose caller is an MCP client."""

PersonState = Literal["approval", "input"]
"""The states of a call that waits for a person."""


def _store_field() -> Any:
    """Return a field set by the store, ignored in comparisons.

    A step stays the same, whenever and however often it was taken.
    """
    return field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A run before its first step.

    `owner` is the principal's id, empty for anonymous. `input` are the messages that it adds to its
    conversation, after those of `previous` (a run) or of `conversation`. `request` is a JSON object with all
    else that its face needs to continue it. A run that is not `retained` is deleted when it ends.
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
    retained: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun(NewRun):
    """A run as it is stored; times are seconds since the epoch.

    `holder` is the process that works on it, until `held_until`; a queued run is left alone until then. It
    was worked on for `worked` seconds, plus the time since `since`: when its holder took it. `lost` is the
    number of processes in a row whose lease ran out before they noted a step. `error` has the members `code`
    and `message`. `takeovers` counts all takeovers from a process that had died.
    """

    status: RunStatus
    created_at: float
    ended_at: float | None = None
    ending: Ending | None = None
    usage: Usage | None = None
    error: Mapping[str, str] | None = None
    holder: str | None = None
    held_until: float | None = None
    worked: float = 0.0
    since: float | None = None
    lost: int = 0
    takeovers: int | None = _store_field()
    taken_over_at: float | None = _store_field()

    @property
    def input_methods(self) -> Collection[str]:
        """The methods of the input requests that its caller may answer: at `/mcp` all, elsewhere forms."""
        return METHODS if self.face == MCP_FACE else (FORM,)


@dataclass(frozen=True, slots=True)
class Ended:
    """The outcome of a run.

    `added` are the messages after its input, for runs that follow it. Its conversation gets both, and neither
    if `added` is `None`. `error` has the members `code` and `message`. A run that is not retained is deleted
    at once, unless it `lingers` for its followers at other replicas: then the process that ends it deletes it
    shortly after, or `purge` does. With `owed` the caller of a retained run is sent its answer later.
    """

    status: RunStatus
    ending: Ending | None = None
    usage: Usage | None = None
    error: Mapping[str, str] | None = None
    added: Sequence[Message] | None = None
    lingers: bool = False
    owed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """One answer of the model; its calls are stored as `StoredCall`s.

    `sent` and `details` are as in `Turn`. `written` are the calls as the model wrote them, each with `id`,
    `name`, `arguments` (a text) and `extra`. `prompt` is its prompt: `model` (a name), `limit` (the number of
    tools it takes), and the digests of two materials: `system` (a message) and `tools` (a list of digests).
    Both `written` and `prompt` are `None` in turns from before these were stored. `seconds` is its duration;
    `ended_at` is set by the store.
    """

    step: int
    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    sent: tuple[str, ...] = ()
    written: Sequence[Mapping[str, object]] | None = None
    prompt: Mapping[str, Any] | None = None
    seconds: float | None = None
    details: AnswerDetails = NO_DETAILS
    ended_at: float | None = _store_field()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCall:
    """One call of a turn.

    `event_id` is the id of its CloudEvent, the same at every attempt, and unique in the store. `id`, `name`,
    `extra` and `origin` are as in `ToolCall`; `arguments` are those sent, or those written by the model if
    the call is refused. `tokens` are as in `CallFinished`. `deadline` is the time until which a late answer
    must come.

    A decision makes a call `open` again; a denied call is refused and never sent. `attempts` counts the
    attempts to send it, the last one at `sent_at`. `due` is the time until which the reply to the call posted
    at `sent_at` must come. The store sets the times.

    `input_request` is what a call that waits for input requests, and `input_answer` the answer with which it
    is sent again, under another `event_id`; both are JSON objects as in `beckon_contract.inputs`.

    `deliveries` is the number of its deliveries to the tool, if the reply reports it. `report` is the last
    one of a call that is answered later: `progress` and `total`, numbers (`total` may be `None`), and
    `message`.
    """

    event_id: str
    step: int
    number: int
    id: str
    name: str
    arguments: Mapping[str, object]
    extra: Mapping[str, object] = field(default_factory=dict)
    origin: CallOrigin = "api"
    state: CallState = "open"
    result: object = None
    failed: bool = False
    seconds: float | None = None
    tokens: int = 0
    deadline: float | None = None
    decision: Decision | None = None
    decided_by: str | None = None
    decision_reason: str | None = None
    input_request: Mapping[str, Any] | None = None
    input_answer: Mapping[str, Any] | None = None
    attempts: int | None = _store_field()
    sent_at: float | None = _store_field()
    finished_at: float | None = _store_field()
    decided_at: float | None = _store_field()
    deliveries: int | None = _store_field()
    report: Mapping[str, Any] | None = _store_field()
    due: float | None = _store_field()

    @property
    def needs_person(self) -> bool:
        """True if the call waits for a person: for an approval, or for input."""
        return self.state in ("approval", "input")

    @property
    def wanted_approval(self) -> bool:
        """True if the call waits for an approval, or has a decision."""
        return self.decision is not None or self.state == "approval"


@dataclass(frozen=True, slots=True)
class Exchanged:
    """The sent event of a call and its reply, as JSON objects.

    Each has the member `event`, in CloudEvents' JSON format; the reply may have `problem` in its place, the
    document with the reason for the missing reply. `omitted` is the number of bytes of data too large to
    store.
    """

    event_id: str
    name: str
    call: Mapping[str, Any] | None = None
    reply: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class LogEntries:
    """Published events of a run, as JSON objects for its log. Their numbers are `first`, `first + 1`, ..."""

    first: int = 1
    events: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True, slots=True)
class Past:
    """All turns and calls of a run so far, in their order."""

    turns: Sequence[StoredTurn]
    calls: Sequence[StoredCall]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConversation:
    """A message thread extended by runs. `created_at` is in seconds since the epoch."""

    id: str
    owner: str
    metadata: Mapping[str, str]
    created_at: float


@dataclass(frozen=True, slots=True)
class LimitDecision:
    """The decision of a limit on one request. `retry_after` are the seconds until there is room again."""

    allowed: bool
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class ReservedLimit:
    """A limit per sliding window, with reservations.

    `window` is in seconds. A reservation is dropped after `seconds`, if it was not settled before: its
    process is dead then. With `behind_others` the reservations of others count as used.
    """

    limit: int
    window: float
    seconds: float
    behind_others: bool = True


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a list, without its input and its request.

    `question` is the beginning of its input, `tools` the number of calls of each tool, `failed` that of
    failed calls, and `approvals` and `inputs` those of calls waiting for an approval and for input. `usage`
    is counted so far if the run has not ended.
    """

    run: StoredRun
    question: str
    tools: Mapping[str, int]
    failed: int
    approvals: int
    inputs: int
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A conversation in a list.

    `title` is the beginning of its first question, empty if there is none yet. `used_at` is the time of the
    last question or answer.
    """

    conversation: StoredConversation
    title: str
    used_at: float

    @property
    def place(self) -> str:
        """Its present place in the list: id and time."""
        return f"{self.conversation.id}@{self.used_at!r}"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call with a pending approval, its run and the run's question.

    `since` is the beginning of the wait, in seconds since the epoch. `part` counts the approval requests of
    the run, this one included.
    """

    run_id: str
    agent: str
    face: str
    question: str
    part: int
    call: StoredCall
    since: float | None


@dataclass(frozen=True, slots=True)
class RunFilter:
    """A filter for an owner's runs; `None` matches every run."""

    status: RunStatus | None = None
    agent: str | None = None
    conversation: str | None = None
    face: str | None = None
