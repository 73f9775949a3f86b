"""The events of a run, one class each.

A class here and the code that yields the event are all that a new event needs: the log, its streams and the
other APIs take it from its class. An API that has no word for an event leaves it out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from beckon_agent.core.model_types import Logprobs, Message, ToolCall, Turn, Usage
from beckon_contract.resources.tools import CallOrigin

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
class RunEvent:
    """An event of a run.

    `stored_name` is its name in stored logs, and never changes. `streamed_name` is its name at
    `GET /runs/{id}/events`. A resumed run publishes no event again that has the same `identity`; with `None`,
    each is another event.
    """

    stored_name: ClassVar[str]
    streamed_name: ClassVar[str]
    same_by: ClassVar[str | None] = None

    @property
    def identity(self) -> tuple[type, object] | None:
        """The class, and the value of the field `same_by`."""
        if self.same_by is None:
            return None
        return type(self), getattr(self, self.same_by) if self.same_by else ""


STORED_EVENTS: dict[str, type[RunEvent]] = {}
"""All events of a log, by their stored names."""

Kind = TypeVar("Kind", bound=type[RunEvent])


def run_event(
    stored: str, streamed: str, *, same_by: str | None = None, once: bool = False
) -> Callable[[Kind], Kind]:
    """Add a class to the events of a log.

    `same_by` is the field that identifies the event in its run. An event that comes `once` has none.
    """

    def add_event(kind: Kind) -> Kind:
        kind.stored_name, kind.streamed_name = stored, streamed
        kind.same_by = "" if once else same_by
        if STORED_EVENTS.setdefault(stored, kind) is not kind:
            raise ValueError(f"two events are stored as {stored}")
        return kind

    return add_event


@run_event("TextDelta", "text")
@dataclass(frozen=True, slots=True)
class TextDelta(RunEvent):
    """A piece of the answer, to be shown at once.

    `logprobs` are those of its tokens, if the model server sends them.
    """

    text: str
    logprobs: Logprobs = ()


@run_event("RefusalDelta", "refusal")
@dataclass(frozen=True, slots=True)
class RefusalDelta(TextDelta):
    """A piece of a refusal. It is the answer's text for an API without refusals."""


@run_event("ReasoningDelta", "reasoning")
@dataclass(frozen=True, slots=True)
class ReasoningDelta(RunEvent):
    """A piece of the model's reasoning, separate from the answer."""

    text: str


@run_event("AnnotationAdded", "annotation")
@dataclass(frozen=True, slots=True)
class AnnotationAdded(RunEvent):
    """A citation in an answer, after its text.

    Its places are counted from the beginning of this answer, whose text has `length` characters.
    """

    annotation: Mapping[str, Any]
    length: int

    def place_in(self, length: int) -> Mapping[str, Any]:
        """Return the annotation for a text of so many characters that ends with this answer's."""
        before = length - self.length
        places = {name: self.annotation[name] + before for name in ("start_index", "end_index")}
        return {**self.annotation, **places}


@run_event("CallStarted", "call", same_by="id")
@dataclass(frozen=True, slots=True)
class CallStarted(RunEvent):
    """The model has requested a call.

    `arguments` are those sent, or those written by the model if the call is refused.
    """

    id: str
    name: str
    arguments: Mapping[str, object]
    origin: CallOrigin = "api"


@run_event("ApprovalAsked", "approval", same_by="event_id")
@dataclass(frozen=True, slots=True)
class ApprovalRequested(RunEvent):
    """A call waits for an approval.

    A decision refers to `event_id`; `id` is the model's id of the call.
    """

    event_id: str
    id: str
    name: str
    arguments: Mapping[str, object]
    origin: CallOrigin = "api"


@run_event("InputRequested", "input", same_by="event_id")
@dataclass(frozen=True, slots=True)
class InputRequested(RunEvent):
    """The tool of a call requests input of a person.

    An answer refers to `event_id`; `id` is the model's id of the call. `message` and `schema` are as in
    `beckon_contract.inputs.InputRequest`.
    """

    event_id: str
    id: str
    name: str
    message: str
    schema: Mapping[str, Any]


@run_event("ClientCallAsked", "client_call", same_by="id")
@dataclass(frozen=True, slots=True)
class ClientCallRequested(RunEvent):
    """A call of a client tool.

    The run ends with it, and the client answers in a new one.
    """

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class CallProgressed(RunEvent):
    """A tool's progress report on a call: `done` of `total`.

    `total` is `None` if it is unknown. Reports are not in the event log: a follower gets those published
    while it follows, and the newest one of each call in progress.
    """

    id: str
    name: str
    done: float
    total: float | None
    message: str


@run_event("CallFinished", "result", same_by="id")
@dataclass(frozen=True, slots=True)
class CallFinished(RunEvent):
    """A tool call has its answer: data or an error object.

    The data are the tool's; an error object is as in `failures`. `tokens` is the cost reported by the reply;
    agents report it.
    """

    id: str
    name: str
    result: object
    failed: bool
    seconds: float
    tokens: int = 0


@run_event("TurnNoted", "turn", same_by="step")
@dataclass(frozen=True, slots=True)
class TurnNoted(RunEvent):
    """The model's answer number `step` (0, 1, …) is complete and stored."""

    step: int


@run_event("AnswerDropped", "dropped")
@dataclass(frozen=True, slots=True)
class AnswerDropped(RunEvent):
    """The text since the last `TurnNoted` is void.

    It is left from a process that died in the middle of an answer. The request to the model is repeated.
    """


@run_event("RunSuspended", "suspended")
@dataclass(frozen=True, slots=True)
class RunSuspended(RunEvent):
    """The run waits for a decision, for input, or for a late answer.

    Nothing more happens until one comes; then the run continues.
    """


@run_event("RunFinished", "finished", once=True)
@dataclass(frozen=True, slots=True)
class RunFinished(RunEvent):
    """The last event of every finished run.

    `messages` are those added to the conversation by the run. `usage` is that of its own model; `elsewhere`
    are the tokens used by agents that it called. `fingerprint` is that of its last answer.
    """

    ending: Ending
    usage: Usage | None
    messages: tuple[Message, ...]
    elsewhere: int = 0
    fingerprint: str = ""


@run_event("RunFailed", "failed", once=True)
@dataclass(frozen=True, slots=True)
class RunFailed(RunEvent):
    """The last event of a failed run.

    `code` is for programs. `retry_after` is the time until the next attempt in seconds, if it is known.
    """

    code: str
    message: str
    retry_after: int | None = None


StreamItem = TextDelta | ReasoningDelta | ToolCall | Turn
