"""What a run has told so far: numbers, and what need not be told twice after a resumption."""

from collections.abc import Sequence

from beckon_agent.engine.base import AnswerDropped, EngineEvent, RunFailed, TurnNoted
from beckon_agent.model.types import ReasoningDelta, TextDelta
from beckon_agent.runs import (
    ApprovalAsked,
    CallFinished,
    CallStarted,
    ClientCallAsked,
    RunFinished,
    RunSuspended,
)

Key = tuple[type, object]


class Told:
    """Numbers the events of a run from 1 on, and knows those that were told already."""

    def __init__(self) -> None:
        self.last = 0
        self._known: set[Key] = set()
        self._in_answer = False

    def recall(self, event: EngineEvent) -> None:
        """Take an event that an earlier process told."""
        self.last += 1
        self._note(event)

    def missing(self, turns: int) -> Sequence[EngineEvent]:
        """Return what has to be told first by who goes on with a run of so many stored turns.

        What the model says is told before its turn is stored; so an answer that is in the middle
        belongs to a stored turn that was not told of, or to none, and then it is void.
        """
        noted = [TurnNoted(step) for step in range(turns) if (TurnNoted, step) not in self._known]
        return noted or ([AnswerDropped()] if self._in_answer else [])

    def number(self, event: EngineEvent) -> int | None:
        """Return the number of an event, `None` for one that was told already."""
        key = _key(event)
        if key is not None and key in self._known:
            return None
        self.last += 1
        self._note(event)
        return self.last

    def _note(self, event: EngineEvent) -> None:
        key = _key(event)
        if key is not None:
            self._known.add(key)
        self._in_answer = isinstance(event, TextDelta | ReasoningDelta)


def _key(event: EngineEvent) -> Key | None:
    """Return what makes an event the same as one of an earlier process, `None` where each is another."""
    match event:
        case CallStarted(id=call_id) | ClientCallAsked(id=call_id) | CallFinished(id=call_id):
            return type(event), call_id
        case ApprovalAsked(event_id=event_id):
            return type(event), event_id
        case TurnNoted(step=step):
            return type(event), step
        case RunFinished() | RunFailed():
            return type(event), ""
        case _:
            return None


def is_end(event: EngineEvent) -> bool:
    """Whether nothing ever follows an event."""
    return isinstance(event, RunFinished | RunFailed)


def is_last(event: EngineEvent) -> bool:
    """Whether nothing follows an event before somebody else acts."""
    return is_end(event) or isinstance(event, RunSuspended)
