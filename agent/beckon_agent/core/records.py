"""The records of the store: runs, turns, calls, conversations, and the use of limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from beckon_agent.core.model_types import Message, Usage
from beckon_agent.core.run_types import Ending
from beckon_contract.tools import CallOrigin

RunStatus = Literal["queued", "running", "suspended", "completed", "incomplete", "failed", "cancelled"]
"""`suspended` waits for an approval or for a tool that answers later; nobody holds it."""

FINAL: frozenset[RunStatus] = frozenset({"completed", "incomplete", "failed", "cancelled"})

CallState = Literal["open", "approval", "sent", "accepted", "client", "done"]
"""`open` may be sent, `approval` waits for a person, `sent` may have had its effect, `accepted` will be
answered later by an event, `client` is the client's to make, `done` has its result."""

Decision = Literal["approved", "denied"]


def _note() -> Any:
    """Return a field that the store sets: when a step was taken, and how often, makes it no other step."""
    return field(default=None, compare=False)


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

    `holder` is the process that works on it, until `held_until`; a queued run is left alone until then.
    It was worked on for `worked` seconds, and on top of that from `since` on: when its holder took it.
    `lost` processes in a row have let their time run out before they noted a step. `error` has the
    members `code` and `message`. `takeovers` counts all processes that went on with it because another
    had died.
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
    takeovers: int | None = _note()
    taken_over_at: float | None = _note()


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
    turns that were stored before anybody kept them. `seconds` is how long it took; `ended_at` the store sets.
    """

    step: int
    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None
    sent: tuple[str, ...] = ()
    written: Sequence[Mapping[str, object]] | None = None
    asked: Mapping[str, Any] | None = None
    seconds: float | None = None
    ended_at: float | None = _note()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCall:
    """One call of a turn.

    `event_id` is the id of its CloudEvent, the same at every attempt, and unique in the store.
    `id`, `name`, `extra` and `origin` are as in `ToolCall`; `arguments` are those that are sent, or
    were written by the model where the call is refused. `tokens` are as in `CallFinished`. `deadline` is
    when a late answer is late.
    A decision makes a call `open` again; one that was denied is refused and never sent. `attempts` counts
    how often it was begun to be sent, the last time at `sent_at`. The times are the store's to set.
    `due` is when the reply to a call is, that was posted at `sent_at`.
    `deliveries` is how often it came to its tool, where the reply says so. `report` is the last one of a
    call that is answered later: `progress` and `total`, numbers (`total` may be `None`), and `message`.
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
    attempts: int | None = _note()
    sent_at: float | None = _note()
    finished_at: float | None = _note()
    decided_at: float | None = _note()
    deliveries: int | None = _note()
    report: Mapping[str, Any] | None = _note()
    due: float | None = _note()


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What went out for a call, and what came back, as JSON objects.

    Each has the member `event`, in CloudEvents' JSON format; what came back may have `problem` in its
    place, the document that says why there is no reply. `omitted` are the bytes of data that were too
    many to keep.
    """

    event_id: str
    name: str
    call: Mapping[str, Any] | None = None
    reply: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class LogEntries:
    """What a run told its client, ready for its log: the events `first`, `first + 1`, ..., JSON objects."""

    first: int = 1
    events: Sequence[Mapping[str, object]] = ()


@dataclass(frozen=True, slots=True)
class Past:
    """All that a run has done so far, in its order."""

    turns: Sequence[StoredTurn]
    calls: Sequence[StoredCall]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConversation:
    """A thread of messages that runs add to; `created_at` in seconds since the epoch."""

    id: str
    owner: str
    metadata: Mapping[str, str]
    created_at: float


@dataclass(frozen=True, slots=True)
class LimitDecision:
    """Whether a limit had room; `retry_after` are the seconds until it will."""

    allowed: bool
    retry_after: float = 0.0


@dataclass(frozen=True, slots=True)
class ReservedLimit:
    """A limit per sliding window that is reserved of: `window` and `seconds` in seconds.

    A reservation lasts for `seconds` unless it is settled before: then its process is dead. With
    `behind_others` what others have reserved counts as used.
    """

    limit: int
    window: float
    seconds: float
    behind_others: bool = True


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in a list, without its input and its request.

    `question` is how its input begins, `tools` how often each was called, `failed` how many of the calls
    failed, `approvals` how many wait for a person. `usage` is counted so far where the run has not ended.
    """

    run: StoredRun
    question: str
    tools: Mapping[str, int]
    failed: int
    approvals: int
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A conversation in a list; `title` is how its first question begins, empty where there is none yet.

    `used_at` is when somebody last asked something there, or was answered.
    """

    conversation: StoredConversation
    title: str
    used_at: float

    @property
    def place(self) -> str:
        """Where it stands in the list now: id and time."""
        return f"{self.conversation.id}@{self.used_at!r}"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits for a person: its run, what was asked there, and since when it waits.

    `part` counts how often the run has asked, this time included.
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
    """Which of an owner's runs are wanted; what is `None` does not matter."""

    status: RunStatus | None = None
    agent: str | None = None
    conversation: str | None = None
