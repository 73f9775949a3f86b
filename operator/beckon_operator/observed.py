"""Objects as last seen, reduced to the fields needed for judging."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from beckon_contract.catalogue.parameter_sources import LAST_APPLIED
from beckon_contract.knative.eventtypes import is_event_type
from beckon_contract.kubernetes_objects import Resource, from_object


@dataclass(frozen=True, slots=True)
class History:
    """The write history of an EventType, from `metadata.managedFields`.

    `schema_data`: `spec.schemaData` was written, even if it is gone now. `applied`: the spec was written by
    server-side apply, under which Knative hides later changes of schemaData.
    """

    schema_data: bool = False
    applied: bool = False


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """One object, its version seen last, and its write history.

    It is `leaving` once its deletion has begun. `remembered` is an EventType with the schemaData that Knative
    has erased since.
    """

    resource: Resource
    version: int
    history: History = History()
    leaving: bool = False
    remembered: bool = False

    @property
    def namespace(self) -> str:
        """The namespace."""
        return self.resource.namespace

    @property
    def name(self) -> str:
        """The metadata.name."""
        return self.resource.name

    @property
    def uid(self) -> str:
        """The uid; a recreated object of the same name has another."""
        return self.resource.uid

    def says_the_same_as(self, other: "ObservedObject") -> bool:
        """Return True if nothing but the version differs."""
        return self is other or replace(self, version=other.version) == other


def read_observed(document: Mapping[str, Any]) -> ObservedObject:
    """Read an object from the API server; raise `ValueError` if malformed.

    Everything not needed for judging is dropped, because thousands of objects stay in memory.
    """
    resource = from_object(document)
    metadata = document["metadata"]
    history = History()
    if is_event_type(resource):
        history = _read_history(metadata.get("managedFields"))
        resource = replace(resource, status={})
    else:
        # The last-applied manifest is a second copy of all of it, and tells only of EventTypes.
        notes = {name: text for name, text in resource.annotations.items() if name != LAST_APPLIED}
        resource = replace(resource, annotations=notes)
    return ObservedObject(resource, version_of(metadata), history, bool(metadata.get("deletionTimestamp")))


def version_of(metadata: Mapping[str, Any]) -> int:
    """Return `resourceVersion` as a number."""
    return parse_version(str(metadata.get("resourceVersion") or ""))


def parse_version(text: str) -> int:
    """Return a `resourceVersion` as a number: those of one resource can be compared (KEP-5504)."""
    return int(text) if text.isdecimal() else 0


def _read_history(managers: object) -> History:
    schema_data = applied = False
    for manager in managers if isinstance(managers, list) else ():
        if not isinstance(manager, Mapping) or manager.get("subresource"):
            continue
        fields = manager.get("fieldsV1")
        spec = fields.get("f:spec") if isinstance(fields, Mapping) else None
        if isinstance(spec, Mapping):
            schema_data = schema_data or "f:schemaData" in spec
            applied = applied or manager.get("operation") == "Apply"
    return History(schema_data, applied)
