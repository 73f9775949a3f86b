"""The checkpoints of a run: the steps that it records so that another process can resume it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from beckon_agent.core.model_types import Message, Turn, Usage
from beckon_agent.core.run_types import CallFinished, Ending
from beckon_agent.tool_calls.recorded_events import RecordedEvents
from beckon_agent.tool_calls.validation import PreparedCall


@dataclass(slots=True)
class ToolCallState:
    """A call of a turn: the id of its event, and its answer once there is one.

    `accepted` is whether its tool has taken it, to answer by an event that comes later. `posted` is whether
    an earlier process may have posted it, and it must not be posted again: its reply comes by an event, if
    at all. `noted` are the events that have passed for it here.
    """

    event_id: str
    prepared: PreparedCall
    finished: CallFinished | None = None
    accepted: bool = False
    posted: bool = False
    noted: RecordedEvents | None = None


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run has come.

    `step` is the number of the next turn. `unfinished` are all calls of the turn before it, where not
    every result was told to the model; `messages` is what the run has added but for those results.
    """

    step: int = 0
    messages: Sequence[Message] = ()
    unfinished: Sequence[ToolCallState] = ()
    usage: Usage | None = None
    elsewhere: int = 0
    """The tokens that agents used which it called."""

    answered: Ending | None = None
    """How the run ends, where its last turn asked for no calls."""

    sent: Sequence[str] = ()
    """The names of the agent's tools that the last turn was sent."""

    seconds: float = 0.0
    """How long it has worked, without the time that it waited for people."""


class Checkpoints(Protocol):
    """Takes down the steps of one run; whatever it raises ends the run here, for another to resume."""

    async def turn(self, step: int, turn: Turn, calls: Sequence[ToolCallState]) -> None:
        """Note an answer of the model, before any of its calls is made."""
        ...

    async def sending(self, call: ToolCallState, *, seconds: float) -> None:
        """Note that a call may have its effect from now on; its reply is due in so many seconds."""
        ...

    async def reply(self, call: ToolCallState) -> CallFinished | None:
        """Wait for the reply to a posted call that comes by an event; `None` where none came in time.

        Returns `None` at once where replies come in no such manner. Raises `AnswersLater` where the
        tool says that it answers later.
        """
        ...

    async def accepted(self, call: ToolCallState, *, seconds: float) -> None:
        """Note that the answer of a call comes later, within so many seconds."""
        ...

    async def finished(self, call: ToolCallState) -> None:
        """Note the answer of a call, before the model is told; another one that came before replaces it."""
        ...


@dataclass(frozen=True, slots=True)
class RunContext:
    """How a run is kept: its id, where its steps are noted, how far it has come, whether it may wait.

    A run that may wait is suspended where a call needs approval, or its tool answers later; else that
    call is denied, or waited for as long as any other. `conversation` is the id of the one it belongs to.
    """

    run_id: str
    journal: Checkpoints
    progress: RunProgress = RunProgress()
    may_wait: bool = False
    conversation: str = ""


class NoCheckpoints:
    """For runs that nobody will resume."""

    async def turn(self, step: int, turn: Turn, calls: Sequence[ToolCallState]) -> None:
        """Note nothing."""

    async def sending(self, call: ToolCallState, *, seconds: float) -> None:
        """Note nothing."""

    async def reply(self, call: ToolCallState) -> None:
        """Return at once: nothing takes replies that come by events."""

    async def accepted(self, call: ToolCallState, *, seconds: float) -> None:
        """Note nothing."""

    async def finished(self, call: ToolCallState) -> None:
        """Note nothing."""
