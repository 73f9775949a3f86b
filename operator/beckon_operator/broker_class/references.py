"""The objects that Brokers and Triggers refer to: followed by kind, and looked up by reference.

A kind is followed from the first reference to it on. The rights come from Knative's aggregation: a component
with addressable objects labels a ClusterRole `duck.knative.dev/addressable: "true"` (knative/specs,
eventing/control-plane.md, "RBAC Profile"), one with sources `duck.knative.dev/source: "true"`.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from beckon_contract.knative.delivery import Reference
from beckon_contract.kubernetes_objects import READY, Condition, condition
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import ApiError, Collection, Document, name_of
from beckon_sources.reflector import Reflector
from beckon_sources.watch_status import Contact

logger = logging.getLogger(__name__)

_CURES = {
    403: "give the operator list and watch: label a ClusterRole of that component "
    'duck.knative.dev/addressable: "true"'
}
_AGAIN_SECONDS = 5.0  # between two looks for a kind that the API server does not serve

Dependent = tuple[str, str, str]
"""An object that refers to others: its kind, namespace and name."""


@dataclass(frozen=True, slots=True)
class Referenced:
    """The part of an object that a reference needs."""

    status: Mapping[str, Any]
    ready: Condition | None
    generation: int
    observed_generation: int | None


@dataclass(frozen=True, slots=True)
class NotFound:
    """Why a reference leads nowhere."""

    message: str


class Pending:
    """The objects of the kind are not all known yet."""


LookUp = Referenced | NotFound | Pending


class References:
    """Looks up references; `changed` is called with every object that may be judged otherwise."""

    def __init__(
        self, api: ApiClient, namespaces: tuple[str, ...], changed: Callable[[Dependent], None]
    ) -> None:
        self._api = api
        self._namespaces = namespaces
        self._changed = changed
        self._kinds: dict[tuple[str, str], _FollowedKind] = {}
        self._by_dependent: dict[Dependent, frozenset[Reference]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def look_up(self, reference: Reference) -> LookUp:
        """Return the object of a reference; begin to follow its kind."""
        key = reference.api_version, reference.kind
        followed = self._kinds.get(key)
        if followed is None:
            followed = self._kinds[key] = _FollowedKind(*key, self._changed)
            task = asyncio.create_task(followed.follow(self._api, self._namespaces))
            self._tasks.add(task)
        return followed.find(reference)

    def set_references(self, dependent: Dependent, references: frozenset[Reference]) -> None:
        """Set all references of an object; none when it is gone."""
        for old in self._by_dependent.pop(dependent, frozenset()) - references:
            if followed := self._kinds.get((old.api_version, old.kind)):
                followed.remove_dependent((old.namespace, old.name), dependent)
        for one in references:
            self.look_up(one)
            self._kinds[one.api_version, one.kind].add_dependent((one.namespace, one.name), dependent)
        if references:
            self._by_dependent[dependent] = references

    async def close(self) -> None:
        """Stop following."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@dataclass(slots=True)
class _FollowedKind:
    """The objects of one kind, and who refers to them."""

    api_version: str
    kind: str
    changed: Callable[[Dependent], None]
    objects: dict[tuple[str, str], Referenced] = field(default_factory=dict)
    dependents: dict[tuple[str, str], set[Dependent]] = field(default_factory=dict)
    contact: Contact = field(default_factory=lambda: Contact(_CURES))
    problem: str = ""
    complete: bool = False

    def find(self, reference: Reference) -> LookUp:
        document = self.objects.get((reference.namespace, reference.name))
        if document is not None:
            return document
        if self.problem:
            return NotFound(self.problem)
        if not self.complete:
            return Pending()
        if refused := self.contact.refusal:
            return NotFound(f"{refused}; {_CURES[403]}" if "(403)" in refused else refused)
        return NotFound(
            f"{reference.kind} {reference.namespace}/{reference.name} ({self.api_version}) does not exist"
        )

    def add_dependent(self, name: tuple[str, str], dependent: Dependent) -> None:
        self.dependents.setdefault(name, set()).add(dependent)

    def remove_dependent(self, name: tuple[str, str], dependent: Dependent) -> None:
        dependents = self.dependents.get(name, set())
        dependents.discard(dependent)
        if not dependents:
            self.dependents.pop(name, None)

    async def follow(self, api: ApiClient, namespaces: tuple[str, ...]) -> None:
        """Find the kind's collection, and mirror it until cancelled."""
        plural = await self._find_plural(api)
        async with asyncio.TaskGroup() as group:
            for namespace in namespaces or (None,):
                collection = Collection(self.api_version, plural, namespace)
                reflector = Reflector(api, collection, self, self.contact, required=False)
                group.create_task(reflector.run())
            await self.contact.wait()
            self.complete = True
            self._report_all()

    async def _find_plural(self, api: ApiClient) -> str:
        """Return the plural of the kind once the API server serves it."""
        root = "apis" if "/" in self.api_version else "api"
        while True:
            try:
                served = await api.find(f"/{root}/{self.api_version}")
            except ApiError as error:
                served, self.problem = None, f"the API server does not say what it serves: {error}"
            else:
                self.problem = f"the API server serves no kind {self.kind} in {self.api_version}"
            for one in (served or {}).get("resources") or ():
                if one.get("kind") == self.kind and "/" not in str(one.get("name")):
                    self.problem = ""
                    return str(one["name"])
            self._report_all()
            await asyncio.sleep(_AGAIN_SECONDS)

    def put(self, document: Document) -> None:
        """Take an object of the collection."""
        name, referenced = name_of(document), _read_referenced(document)
        if self.objects.get(name) != referenced:
            self.objects[name] = referenced
            self._report(name)

    def drop(self, namespace: str, name: str) -> None:
        """Forget a deleted object."""
        self.objects.pop((namespace, name), None)
        self._report((namespace, name))

    def _report(self, name: tuple[str, str]) -> None:
        for dependent in tuple(self.dependents.get(name, ())):
            self.changed(dependent)

    def _report_all(self) -> None:
        for name in tuple(self.dependents):
            self._report(name)


def _read_referenced(document: Document) -> Referenced:
    metadata, status = document.get("metadata") or {}, document.get("status")
    known: Mapping[str, Any] = status if isinstance(status, Mapping) else {}
    address = {name: known[name] for name in ("address", "addresses") if name in known}
    observed = known.get("observedGeneration")
    return Referenced(
        address,
        condition(known, READY),
        int(metadata.get("generation") or 0),
        observed if isinstance(observed, int) else None,
    )
