"""The watched kinds, their objects as last seen, and a store for each kind."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from beckon_contract.catalogue.annotations import LAST_APPLIED
from beckon_contract.knative.eventtypes import GROUP as EVENTING
from beckon_contract.knative.eventtypes import is_event_type
from beckon_contract.kubernetes_objects import Resource, from_object
from beckon_contract.resources import tools

SERVING = "serving.knative.dev"

# v1beta2 is what Knative stores: listing it needs no conversion webhook, and only it and
# v1beta1 have a field for schemaData.
EVENT_TYPE_VERSIONS = ("v1beta2", "v1beta3", "v1beta1")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects in one version of its group."""

    group: str
    version: str
    plural: str
    name: str

    @property
    def api_version(self) -> str:
        """The group and the version, as objects state them."""
        return f"{self.group}/{self.version}"


EVENT_TYPES = Kind(EVENTING, EVENT_TYPE_VERSIONS[0], "eventtypes", "EventType")
TRIGGERS = Kind(EVENTING, "v1", "triggers", "Trigger")
BROKERS = Kind(EVENTING, "v1", "brokers", "Broker")
SERVICES = Kind(SERVING, "v1", "services", "Service")
TOOLS = Kind(tools.GROUP, tools.VERSION, tools.PLURAL, tools.KIND)


BrokerKey = tuple[str, str]
"""The namespace and the name of a Broker."""

# Long enough for events of a watch that lags behind; an object that is gone never comes back.
_TOMBSTONES = 20_000


class VersionedObject(Protocol):
    """An item of a store: an object's identity and version."""

    @property
    def namespace(self) -> str:
        """The namespace."""

    @property
    def name(self) -> str:
        """The metadata.name."""

    @property
    def uid(self) -> str:
        """The metadata.uid."""

    @property
    def version(self) -> int:
        """The resourceVersion."""


Item = TypeVar("Item", bound=VersionedObject)


class ObjectStore(Generic[Item]):
    """Objects of one kind; outdated reports are ignored.

    A report is outdated if its version is not newer than the known one, or if its object is gone.

    Events of different objects arrive in any order, mixed with lists. An object recreated under an old name
    has another uid, and the deletion of the old one must not remove it.
    """

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, Item]] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def find_object(self, namespace: str, name: str) -> Item | None:
        """Return an object, or `None` if there is none."""
        return self._namespaces.get(namespace, {}).get(name)

    def objects_within(self, namespace: str) -> Mapping[str, Item]:
        """Return the objects of a namespace by name."""
        return self._namespaces.get(namespace, {})

    def namespaces(self) -> list[str]:
        """Return the namespaces with at least one object."""
        return list(self._namespaces)

    def __iter__(self) -> Iterator[Item]:
        for items in self._namespaces.values():
            yield from items.values()

    def put_object(self, item: Item) -> bool:
        """Store an object; return False if it is outdated."""
        if item.uid in self._gone:
            return False
        known = self.find_object(item.namespace, item.name)
        if known is not None and item.version <= known.version:
            return False
        if known is not None and known.uid != item.uid:
            self.mark_deleted(known.uid)
        self._count += known is None
        self._namespaces.setdefault(item.namespace, {})[item.name] = item
        return True

    def drop_object(self, namespace: str, name: str, uid: str) -> Item | None:
        """Remove an object; return it, or `None` if it was unknown."""
        known = self.find_object(namespace, name)
        if known is None or known.uid != uid:
            return None
        items = self._namespaces[namespace]
        del items[name]
        self._count -= 1
        if not items:
            del self._namespaces[namespace]
        return known

    def mark_deleted(self, uid: str) -> None:
        """Mark an object as gone; later reports of it are ignored."""
        self._gone[uid] = None
        if len(self._gone) > _TOMBSTONES:
            self._gone.popitem(last=False)


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
        # The last-applied manifest is a second copy of the object, needed for EventTypes only.
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
