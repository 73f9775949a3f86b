"""Events of a run as JSON objects, for the log that a broken stream is resumed from."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

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

_KINDS: Mapping[str, TypeAdapter[Any]] = {
    kind.__name__: TypeAdapter(kind)
    for kind in (
        TextDelta,
        ReasoningDelta,
        CallStarted,
        ApprovalAsked,
        CallFinished,
        AnswerDropped,
        TurnNoted,
        ClientCallAsked,
        RunSuspended,
        RunFinished,
        RunFailed,
    )
}


def to_log(event: EngineEvent) -> dict[str, object]:
    """Return an event as a JSON object: its fields, and its class as `type`."""
    name = type(event).__name__
    return {"type": name, **_KINDS[name].dump_python(event, mode="json")}


def from_log(document: Mapping[str, object]) -> EngineEvent:
    """Return the event that was written; raise `KeyError` or `ValueError` for anything else."""
    fields = {name: value for name, value in document.items() if name != "type"}
    event: EngineEvent = _KINDS[str(document["type"])].validate_python(fields)
    return event
