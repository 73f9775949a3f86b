"""JSON documents of a run's events and options, for its log and its request."""

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from beckon_agent.core.model_types import ReasoningDelta, TextDelta
from beckon_agent.core.run_types import (
    ApprovalRequested,
    CallFinished,
    CallStarted,
    ClientCallRequested,
    Options,
    RunFinished,
    RunSuspended,
)
from beckon_agent.durable.base import AnswerDropped, EngineEvent, RunFailed, TurnNoted

# Stored logs name their events by these words, whatever the classes are called today.
_NAMES: Mapping[type[EngineEvent], str] = {
    TextDelta: "TextDelta",
    ReasoningDelta: "ReasoningDelta",
    CallStarted: "CallStarted",
    ApprovalRequested: "ApprovalAsked",
    CallFinished: "CallFinished",
    AnswerDropped: "AnswerDropped",
    TurnNoted: "TurnNoted",
    ClientCallRequested: "ClientCallAsked",
    RunSuspended: "RunSuspended",
    RunFinished: "RunFinished",
    RunFailed: "RunFailed",
}
_ADAPTERS: Mapping[str, TypeAdapter[Any]] = {name: TypeAdapter(kind) for kind, name in _NAMES.items()}


def event_to_document(event: EngineEvent) -> dict[str, object]:
    """Return an event as a JSON object: its fields, and its class as `type`."""
    name = _NAMES[type(event)]
    return {"type": name, **_ADAPTERS[name].dump_python(event, mode="json")}


def event_from_document(document: Mapping[str, object]) -> EngineEvent:
    """Return the event that was written; raise `KeyError` or `ValueError` for anything else."""
    fields = {name: value for name, value in document.items() if name != "type"}
    event: EngineEvent = _ADAPTERS[str(document["type"])].validate_python(fields)
    return event


_OPTIONS = TypeAdapter(Options)


def options_to_request(options: Options) -> dict[str, object]:
    """Return the options as a part of a run's request."""
    return {"options": _OPTIONS.dump_python(options, mode="json")}


def options_from_request(request: Mapping[str, object]) -> Options:
    """Return the options that were put into a request; the default ones for a run without."""
    return _OPTIONS.validate_python(request.get("options") or {})
