"""The state of the cluster, and the namespaces to judge again after a change.

`spec.schemaData` is remembered as it was before Knative erased it, as long as nothing else has changed.
"""

import json
import logging
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from typing import Any

from beckon_contract.catalogue.annotations import LAST_APPLIED, PARAMETERS, SCHEMA_DATA
from beckon_contract.knative.routes import Listener, read_trigger, wanted_type
from beckon_contract.kubernetes_objects import Resource
from beckon_operator.desired_state import DesiredState
from beckon_operator.objects import (
    BROKERS,
    EVENT_TYPES,
    SERVICES,
    TOOLS,
    TRIGGERS,
    Kind,
    ObjectStore,
    ObservedObject,
    read_observed,
    version_of,
)
from beckon_operator.tools import ToolSeen, read_seen

_PLACE = "spec.schemaData"
_DURABLE = (PARAMETERS, SCHEMA_DATA, LAST_APPLIED)


class RecoveredSchemas:
    """The schemaData seen so far, by uid and generation of the EventType.

    Knative erases schemaData through a status update, which leaves the generation as it is. A text that was
    seen is therefore valid until the generation changes. A Tool made from it preserves it over a restart.
    """

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, str]] = {}

    def recall_schema(self, observed: ObservedObject) -> ObservedObject:
        """Return an EventType with the schemaData of its generation, and remember it.

        An EventType with its parameters in a durable place is returned as it is.
        """
        resource = observed.resource
        text = resource.spec.get("schemaData")
        if isinstance(text, str) and text.strip():
            self._seen[resource.uid] = (resource.generation, text)
            return observed
        if any(resource.annotations.get(name) for name in _DURABLE):
            return observed
        generation, seen = self._seen.get(resource.uid, (-1, ""))
        if generation != resource.generation:
            self._seen.pop(resource.uid, None)
            return observed
        completed = replace(resource, spec={**resource.spec, "schemaData": seen})
        return replace(observed, resource=completed, remembered=True)

    def learn_schema(self, tool: Mapping[str, Any]) -> None:
        """Remember the parameters of a Tool made from spec.schemaData.

        After a restart the Tool may be the only copy.
        """
        spec, origin = tool.get("spec") or {}, (tool.get("status") or {}).get("eventType") or {}
        uid, generation = origin.get("uid"), origin.get("generation")
        if spec.get("parametersFrom") == _PLACE and uid and isinstance(generation, int):
            self._seen.setdefault(uid, (generation, json.dumps(spec.get("parameters"))))

    def forget_schema(self, uid: str) -> None:
        """Forget a deleted EventType."""
        self._seen.pop(uid, None)


logger = logging.getLogger(__name__)


Gone = dict[str, str]
Touched = frozenset[str] | None
Changed = Callable[[str, Touched, frozenset[str]], None]
Observe = Callable[[Kind, ObservedObject | None, ObservedObject | None], None]


class Cluster:
    """The last seen state of every watched object.

    `changed` is called after every change that matters for tools, with three arguments. The first is the
    namespace. The second is the types whose Triggers differ there: empty for an EventType, `None` if any tool
    may be affected. The third is the types in the old and new filters of a Trigger. Tools go to `desired`.
    """

    def __init__(self, desired: DesiredState, changed: Changed) -> None:
        self._desired = desired
        self._changed = changed
        self._observers: list[Observe] = []
        self._recovered = RecoveredSchemas()
        self._listeners = _TypeIndex()
        self._objects: dict[str, ObjectStore[ObservedObject]] = {
            kind.plural: ObjectStore() for kind in (EVENT_TYPES, TRIGGERS, BROKERS, SERVICES)
        }

    def add_observer(self, observe: Observe) -> None:
        """Call a function with each change: the kind, and the object before and after it, if any."""
        self._observers.append(observe)

    def objects_of(self, kind: Kind) -> ObjectStore[ObservedObject]:
        """The objects of another kind."""
        return self._objects[kind.plural]

    def store_of(self, kind: Kind) -> "ObjectStore[ObservedObject] | ObjectStore[ToolSeen]":
        """The objects of any kind."""
        return self._desired.tools if kind.plural == TOOLS.plural else self._objects[kind.plural]

    def listeners_for(self, event_type: str) -> list[Listener]:
        """Return the Triggers of all namespaces with a filter for exactly this type."""
        return self._listeners.find_listeners(event_type)

    def observe_object(self, kind: Kind, document: Mapping[str, Any]) -> None:
        """Take an object from the API server; skip a version already seen."""
        metadata = document["metadata"]
        known = self.store_of(kind).find_object(str(metadata["namespace"]), str(metadata["name"]))
        if known and known.uid == metadata.get("uid") and known.version >= version_of(metadata):
            return
        if kind.plural == TOOLS.plural:
            self.observe_tool(document)
            return
        try:
            observed = read_observed(document)
        except ValueError as error:
            # A schema of the API server hardly lets such an object pass; it is as if it were not there.
            logger.warning("%s %s/%s: %s", kind.name, metadata["namespace"], metadata["name"], error)
            self._forget_object(kind, metadata)
            return
        if kind.plural == EVENT_TYPES.plural:
            observed = self._recovered.recall_schema(observed)
        store = self._objects[kind.plural]
        before = store.find_object(observed.namespace, observed.name)
        if store.put_object(observed) and not (before and before.says_the_same_as(observed)):
            self._report_change(kind, observed.namespace, before, observed)

    def observe_tool(self, document: Mapping[str, Any]) -> None:
        """Take a Tool, as it was watched or as the answer to a write."""
        seen = read_seen(document)
        self._recovered.learn_schema(document)
        if self._desired.tools.put_object(seen):
            self._desired.queue_tool(seen.namespace, seen.name)

    def observe_deletion(self, kind: Kind, metadata: Mapping[str, Any]) -> None:
        """Record the deletion of an object; later reports of it are ignored."""
        uid = str(metadata["uid"])
        self.store_of(kind).mark_deleted(uid)
        self._forget_object(kind, metadata)
        if kind.plural == EVENT_TYPES.plural:
            self._recovered.forget_schema(uid)

    def _forget_object(self, kind: Kind, metadata: Mapping[str, Any]) -> None:
        namespace, name, uid = str(metadata["namespace"]), str(metadata["name"]), str(metadata["uid"])
        if kind.plural == TOOLS.plural:
            self._desired.observe_tool_deletion(namespace, name, uid)
            return
        known = self._objects[kind.plural].drop_object(namespace, name, uid)
        if known is not None:
            self._report_change(kind, namespace, known, None)

    def knows_version(self, kind: Kind, metadata: Mapping[str, Any]) -> bool:
        """Return True if this version of an object, or a later one, was seen."""
        known = self.store_of(kind).find_object(str(metadata["namespace"]), str(metadata["name"]))
        return known is not None and known.version >= version_of(metadata)

    def missing_from(self, kind: Kind, present: Container[str], version: int, namespace: str) -> list[Gone]:
        """Return the known objects of a namespace missing from a list.

        An empty namespace means all. Objects seen at a later version than the list's were created after it.
        """
        return [
            {"namespace": item.namespace, "name": item.name, "uid": item.uid}
            for item in self.store_of(kind)
            if item.uid not in present and item.version <= version and namespace in {"", item.namespace}
        ]

    def _report_change(
        self, kind: Kind, namespace: str, old: ObservedObject | None, new: ObservedObject | None
    ) -> None:
        """Report a created, changed or deleted object."""
        for observe in self._observers:
            observe(kind, old, new)
        if kind.plural == TRIGGERS.plural:
            types = self._listeners.replace_trigger(
                old.resource if old else None, new.resource if new else None
            )
            requested = frozenset(filter(None, types))
            self._changed(namespace, None if None in types else requested, requested)
        else:
            self._changed(namespace, frozenset() if kind.plural == EVENT_TYPES.plural else None, frozenset())


class _TypeIndex:
    """The Triggers of all namespaces by the type in their filter."""

    def __init__(self) -> None:
        self._by_type: dict[str, dict[tuple[str, str], Resource]] = {}

    def find_listeners(self, event_type: str) -> list[Listener]:
        listeners = self._by_type.get(event_type, {})
        read = [read_trigger(listeners[key]) for key in sorted(listeners)]
        return [listener for listener in read if isinstance(listener, Listener)]

    def replace_trigger(self, old: Resource | None, new: Resource | None) -> set[str | None]:
        """Replace a Trigger in the index; return the old and new type.

        `None` is the key of a Trigger without a certain type.
        """
        types: set[str | None] = set()
        if old:
            types.add(self._drop_trigger(old))
        if new:
            wanted = wanted_type(new.spec)
            types.add(wanted)
            if wanted:
                self._by_type.setdefault(wanted, {})[new.namespace, new.name] = new
        return types

    def _drop_trigger(self, old: Resource) -> str | None:
        wanted = wanted_type(old.spec)
        users = self._by_type.get(wanted or "", {})
        users.pop((old.namespace, old.name), None)
        if wanted and not users:
            self._by_type.pop(wanted, None)
        return wanted
