"""EventTypes that are no tools: the events that clients may read."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from beckon_contract.knative.eventtypes import (
    EventType,
    InvalidEventType,
    is_event_type,
    parse_event_type,
    why_no_tool,
)
from beckon_contract.kubernetes_objects import Resource, from_object


def find_events(resources: Iterable[Resource]) -> tuple[EventType, ...]:
    """Return the EventTypes among manifests that are no tools."""
    events = (read_event(resource) for resource in resources if is_event_type(resource))
    return tuple(one for one in events if one is not None)


def read_event(resource: Resource) -> EventType | None:
    """Return an EventType that is no tool; `None` for a tool, and for one with mistakes."""
    try:
        event_type = parse_event_type(resource)
        return None if why_no_tool(event_type) is None else event_type
    except InvalidEventType:
        return None


class EventTypeStore:
    """The EventTypes of the watched namespaces that are no tools. It is the sink of a reflector."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, EventType]] = {}

    def put(self, document: Mapping[str, Any]) -> None:
        """Add or replace an EventType."""
        resource = from_object(document)
        event_type = read_event(resource)
        if event_type is None:
            self.drop(resource.namespace, resource.name)
        else:
            self._known.setdefault(resource.namespace, {})[resource.name] = event_type

    def drop(self, namespace: str, name: str) -> None:
        """Forget an EventType."""
        self._known.get(namespace, {}).pop(name, None)

    def list_in(self, namespace: str) -> Sequence[EventType]:
        """Return the EventTypes of a namespace."""
        return tuple(self._known.get(namespace, {}).values())
