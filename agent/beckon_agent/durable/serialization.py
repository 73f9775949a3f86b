"""JSON documents of a run's events and options.

The events are for its log, the options for its `request`.
"""

from collections.abc import Mapping
from functools import cache

from pydantic import TypeAdapter

from beckon_agent.core.run_events import STORED_EVENTS, RunEvent
from beckon_agent.core.run_types import Options


@cache
def _adapter(name: str) -> TypeAdapter[RunEvent]:
    return TypeAdapter(STORED_EVENTS[name])


def event_to_document(event: RunEvent) -> dict[str, object]:
    """Return an event as a JSON object of its fields.

    The member `type` is its stored name.
    """
    name = event.stored_name
    return {"type": name, **_adapter(name).dump_python(event, mode="json")}


def event_from_document(document: Mapping[str, object]) -> RunEvent:
    """Return the event of a document.

    Raises `KeyError` or `ValueError` for any other document.
    """
    fields = {name: value for name, value in document.items() if name != "type"}
    return _adapter(str(document["type"])).validate_python(fields)


_OPTIONS = TypeAdapter(Options)


def options_to_request(options: Options) -> dict[str, object]:
    """Return the options as a part of a run's request."""
    return {"options": _OPTIONS.dump_python(options, mode="json")}


def options_from_request(request: Mapping[str, object]) -> Options:
    """Return the options of a run's request, the default ones without any."""
    return _OPTIONS.validate_python(request.get("options") or {})
