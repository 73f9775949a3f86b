"""The newest known version of every object of one kind, by namespace and name."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Generic, Protocol, TypeVar

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
        for found in self._namespaces.values():
            yield from found.values()

    def put_object(self, item: Item) -> bool:
        """Store an object; return False if it is outdated."""
        if item.uid in self._gone:
            return False
        known = self.find_object(item.namespace, item.name)
        if known is not None and item.version <= known.version:
            return False
        if known is not None and known.uid != item.uid:
            self.bury_object(known.uid)
        self._count += known is None
        self._namespaces.setdefault(item.namespace, {})[item.name] = item
        return True

    def drop_object(self, namespace: str, name: str, uid: str) -> Item | None:
        """Remove an object; return it, or `None` if it was unknown."""
        known = self.find_object(namespace, name)
        if known is None or known.uid != uid:
            return None
        found = self._namespaces[namespace]
        del found[name]
        self._count -= 1
        if not found:
            del self._namespaces[namespace]
        return known

    def bury_object(self, uid: str) -> None:
        """Mark an object as gone; later reports of it are ignored."""
        self._gone[uid] = None
        if len(self._gone) > _TOMBSTONES:
            self._gone.popitem(last=False)
