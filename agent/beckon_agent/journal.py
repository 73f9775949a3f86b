"""What a run notes of itself before it relies on it, so that another process can go on in its place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from beckon_agent.calling.exchanged import Noted
from beckon_agent.calling.prepared import Prepared
from beckon_agent.model.types import Message, Turn, Usage
from beckon_agent.runs import CallFinished, Ending


@dataclass(slots=True)
class CallOfTurn:
    """A call of a turn: the id of its event, and its answer once there is one.

    `accepted` is whether its tool has taken it, to answer by an event that comes later. `posted` is whether
    an earlier process may have posted it, and it must not be posted again: its reply comes by an event, if
    at all. `noted` are the events that have passed for it here.
    """

    event_id: str
    prepared: Prepared
    finished: CallFinished | None = None
    accepted: bool = False
    posted: bool = False
    noted: Noted | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come.

    `step` is the number of the next turn. `unfinished` are all calls of the turn before it, where not
    every result was told to the model; `messages` is what the run has added but for those results.
    """

    step: int = 0
    messages: Sequence[Message] = ()
    unfinished: Sequence[CallOfTurn] = ()
    usage: Usage | None = None
    elsewhere: int = 0
    """The tokens that agents used which it called."""

    answered: Ending | None = None
    """How the run ends, where its last turn asked for no calls."""

    sent: Sequence[str] = ()
    """The names of the agent's tools that the last turn was sent."""

    seconds: float = 0.0
    """How long it has worked, without the time that it waited for people."""


class Journal(Protocol):
    """Takes down the steps of one run; whatever it raises ends the run here, for another to resume."""

    async def turn(self, step: int, turn: Turn, calls: Sequence[CallOfTurn]) -> None:
        """Note an answer of the model, before any of its calls is made."""
        ...

    async def sending(self, call: CallOfTurn, *, seconds: float) -> None:
        """Note that a call may have its effect from now on; its reply is due in so many seconds."""
        ...

    async def reply(self, call: CallOfTurn) -> CallFinished | None:
        """Wait for the reply to a posted call that comes by an event; `None` where none came in time.

        Returns `None` at once where replies come in no such manner. Raises `AnswersLater` where the
        tool says that it answers later.
        """
        ...

    async def accepted(self, call: CallOfTurn, *, seconds: float) -> None:
        """Note that the answer of a call comes later, within so many seconds."""
        ...

    async def finished(self, call: CallOfTurn) -> None:
        """Note the answer of a call, before the model is told; another one that came before replaces it."""
        ...


@dataclass(frozen=True, slots=True)
class Keeping:
    """How a run is kept: its id, where its steps are noted, how far it has come, whether it may wait.

    A run that may wait is suspended where a call needs approval, or its tool answers later; else that
    call is denied, or waited for as long as any other. `conversation` is the id of the one it belongs to.
    """

    run_id: str
    journal: Journal
    progress: Progress = Progress()
    may_wait: bool = False
    conversation: str = ""


class NoJournal:
    """For runs that nobody will resume."""

    async def turn(self, step: int, turn: Turn, calls: Sequence[CallOfTurn]) -> None:
        """Note nothing."""

    async def sending(self, call: CallOfTurn, *, seconds: float) -> None:
        """Note nothing."""

    async def reply(self, call: CallOfTurn) -> None:
        """Return at once: nothing takes replies that come by events."""

    async def accepted(self, call: CallOfTurn, *, seconds: float) -> None:
        """Note nothing."""

    async def finished(self, call: CallOfTurn) -> None:
        """Note nothing."""
