"""The checkpoints of a run: its recorded steps.

With them another process can resume it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from beckon_agent.core.model_types import Message, Turn, Usage
from beckon_agent.core.run_events import CallFinished, Ending
from beckon_agent.tool_calls.recorded_events import RecordedEvents
from beckon_agent.tool_calls.validation import PreparedCall
from beckon_contract.inputs import FORM, InputRequest


@dataclass(slots=True)
class ToolCallState:
    """A call of a turn: its event's id, and later its answer.

    `accepted` is True if its tool has taken it, and answers by a later event. `posted` is True if it may
    have been posted already, and must not be posted again: its reply comes by an event, if at all.
    `input_request` is the form that its tool has put to a person. `noted` are its events recorded in this
    process.
    """

    event_id: str
    prepared: PreparedCall
    finished: CallFinished | None = None
    accepted: bool = False
    posted: bool = False
    input_request: InputRequest | None = None
    noted: RecordedEvents | None = None


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The progress of a run.

    `step` is the number of the next turn. `unfinished` are all calls of the turn before it, if the model has
    not received every result; `messages` are those added by the run, without these results.
    """

    step: int = 0
    messages: Sequence[Message] = ()
    unfinished: Sequence[ToolCallState] = ()
    usage: Usage | None = None
    elsewhere: int = 0
    """The tokens that agents used which it called."""

    fingerprint: str = ""
    """The fingerprint of the last answer that has one."""

    answered: Ending | None = None
    """How the run ends, where its last turn has no calls."""

    sent: Sequence[str] = ()
    """The names of the agent's tools that the last turn was sent."""

    seconds: float = 0.0
    """How long it has worked, without the time that it waited for people."""


class Checkpoints(Protocol):
    """Records the steps of one run.

    An error raised here ends the run in this process, for another one to resume.
    """

    async def record_turn(self, step: int, turn: Turn, calls: Sequence[ToolCallState]) -> None:
        """Record an answer of the model before any of its calls is made."""
        ...

    async def record_sending(self, call: ToolCallState, *, seconds: float) -> None:
        """Record the sending of a call; its reply is due within `seconds`.

        From now on the call may have its effect.
        """
        ...

    async def wait_for_reply(self, call: ToolCallState) -> CallFinished | None:
        """Wait for the reply event of a posted call; `None` after the time limit.

        Returns `None` at once if replies do not come by events here. Raises `AnswersLater` if the tool says
        that it answers later, and `InputNeeded` if it requests input.
        """
        ...

    async def record_acceptance(self, call: ToolCallState, *, seconds: float) -> None:
        """Record a call with a later answer, due within `seconds`."""
        ...

    async def record_input_request(
        self, call: ToolCallState, request: InputRequest, *, seconds: float
    ) -> None:
        """Record the form of a call; its answer is due within `seconds`."""
        ...

    async def record_result(self, call: ToolCallState) -> None:
        """Record the answer of a call before the model receives it.

        If another answer came before, it replaces this one.
        """
        ...


@dataclass(frozen=True, slots=True)
class RunContext:
    """The context of a run: its id, its checkpoints and its progress.

    A run that may wait is suspended if a call needs approval or input, or its tool answers later; else that
    call is denied, or waited for as long as any other. `conversation` is the id of the run's conversation.
    `input_methods` are those of the input requests that its caller may answer.
    """

    run_id: str
    journal: Checkpoints
    progress: RunProgress = RunProgress()
    may_wait: bool = False
    conversation: str = ""
    input_methods: Collection[str] = (FORM,)


class NoCheckpoints:
    """No checkpoints, for runs without resumption."""

    async def record_turn(self, step: int, turn: Turn, calls: Sequence[ToolCallState]) -> None:
        """Record nothing."""

    async def record_sending(self, call: ToolCallState, *, seconds: float) -> None:
        """Record nothing."""

    async def wait_for_reply(self, call: ToolCallState) -> None:
        """Return `None` at once: replies do not come by events here."""

    async def record_acceptance(self, call: ToolCallState, *, seconds: float) -> None:
        """Record nothing."""

    async def record_input_request(
        self, call: ToolCallState, request: InputRequest, *, seconds: float
    ) -> None:
        """Record nothing."""

    async def record_result(self, call: ToolCallState) -> None:
        """Record nothing."""
