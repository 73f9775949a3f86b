"""JSON documents of a run's events and options.

The events are for its log, the options for its `request`.
"""

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
    """Return an event as a JSON object of its fields.

    The member `type` is the stored name of its class.
    """
    name = _NAMES[type(event)]
    return {"type": name, **_ADAPTERS[name].dump_python(event, mode="json")}


def event_from_document(document: Mapping[str, object]) -> EngineEvent:
    """Return the event of a document.

    Raises `KeyError` or `ValueError` for any other document.
    """
    fields = {name: value for name, value in document.items() if name != "type"}
    event: EngineEvent = _ADAPTERS[str(document["type"])].validate_python(fields)
    return event


_OPTIONS = TypeAdapter(Options)


def options_to_request(options: Options) -> dict[str, object]:
    """Return the options as a part of a run's request."""
    return {"options": _OPTIONS.dump_python(options, mode="json")}


def options_from_request(request: Mapping[str, object]) -> Options:
    """Return the options of a run's request, the default ones without any."""
    return _OPTIONS.validate_python(request.get("options") or {})
