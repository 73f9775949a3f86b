"""Separates an outage from a missing route, and a new Trigger from a usable one, by earlier readiness.

The Brokers and Triggers that have been ready are recorded.

Knative marks a Broker and all its Triggers not ready while a pod of the Broker restarts. Nothing of the route
has changed then, so its tools stay ready, and their calls wait. A Trigger counts only as it is written now:
its uid and its generation are compared. Of a Broker only the uid is, because its class and its config cannot
be changed. The Tools hold the same list, for the next process.

A Trigger of Knative's default Broker is Ready when its Subscription is in the Broker's channel. Subscriptions
that change at the same time each replace the channel's list of subscribers, and can remove a new entry for a
moment while its Trigger stays Ready. An event of that moment is lost. So a Trigger of such a Broker counts as
ready once it has been Ready for some seconds.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from beckon_contract.knative.broker_class import class_of
from beckon_contract.knative.routes import Listener
from beckon_contract.knative.triggers import broker_of
from beckon_contract.kubernetes_objects import READY, Resource, condition

FIELD = "lastReady"

_BROKER, _TRIGGER = "Broker", "Trigger"
_SUBSCRIBER_RESOLVED = "SubscriberResolved"
# Knative's default Broker. Its Triggers are Subscriptions to a channel.
_CHANNEL_CLASS = "MTChannelBasedBroker"
SETTLING_SECONDS = 3.0
"""The time that a Trigger of Knative's default Broker has to be Ready before it counts."""
_SETTLING = f"Ready for less than {SETTLING_SECONDS:g} s, and its channel may still lose it for a moment"


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """One object as it was written at one time; the generation of a Broker is always 0."""

    kind: str
    name: str
    uid: str
    generation: int


class LastReady:
    """The Brokers and Triggers of one namespace with earlier readiness.

    Only readiness in their present version counts.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], ObjectVersion] = {}
        # The Triggers that are Ready but do not count yet, with the times from which they do.
        self._settling: dict[ObjectVersion, float] = {}

    def restore_versions(self, versions: Iterable[ObjectVersion]) -> None:
        """Restore the versions from the Tools of an earlier process."""
        for version in versions:
            self._known.setdefault((version.kind, version.name), version)

    def observe_objects(
        self, brokers: Collection[Resource], triggers: Iterable[Resource], now: float
    ) -> float | None:
        """Read all Brokers and Triggers of the namespace; return when the next Trigger will count.

        Times are seconds of one clock; `None` means that no Trigger waits. Deleted objects are forgotten, and
        rewritten ones until they are ready again.
        """
        before, self._known = self._known, {}
        settling, self._settling = self._settling, {}
        channels = {one.name for one in brokers if class_of(one) == _CHANNEL_CLASS}
        for resource in (*brokers, *triggers):
            version = _to_version(resource)
            key = version.kind, version.name
            if before.get(key) != version:
                if not _is_ready(resource):
                    continue
                due = settling.get(version, now + SETTLING_SECONDS)
                if resource.kind == _TRIGGER and broker_of(resource) in channels and now < due:
                    self._settling[version] = due
                    continue
            self._known[key] = version
        return min(self._settling.values(), default=None)

    def broker_version(self, name: str) -> ObjectVersion | None:
        """Return the last ready version of a Broker, if any."""
        return self._known.get((_BROKER, name))

    def trigger_version(self, name: str) -> ObjectVersion | None:
        """Return the last ready version of a Trigger, if any."""
        return self._known.get((_TRIGGER, name))

    def judge_listener(self, listener: Listener) -> Listener:
        """Return a Trigger with the readiness that counts.

        One in an outage is routed but unavailable, and one that has just become Ready is not ready. Other
        Triggers are returned as they are.
        """
        if self._settling and _to_version(listener.resource) in self._settling:
            return replace(listener, not_ready=_SETTLING)
        if not listener.not_ready or self.trigger_version(listener.trigger.name) is None:
            return listener
        # A subscriber that cannot be resolved is gone: that is a missing route, whatever was before.
        resolved = condition(listener.resource.status, _SUBSCRIBER_RESOLVED)
        if resolved is not None and resolved.status == "False":
            return listener
        return replace(listener, not_ready="", unavailable=listener.not_ready)


def version_document(version: ObjectVersion) -> dict[str, Any]:
    """Return a version as an item of `status.lastReady`; a generation of 0 is left out."""
    document: dict[str, Any] = {"kind": version.kind, "name": version.name, "uid": version.uid}
    return {**document, "generation": version.generation} if version.generation else document


def read_last_ready(status: Mapping[str, Any]) -> tuple[ObjectVersion, ...]:
    """Return the versions in the status of a Tool; malformed ones are skipped."""
    written = status.get(FIELD)
    versions = []
    for one in written if isinstance(written, list) else ():
        if not isinstance(one, Mapping):
            continue
        kind, name, uid = (one.get(field) for field in ("kind", "name", "uid"))
        generation = one.get("generation", 0)
        if isinstance(kind, str) and isinstance(name, str) and isinstance(uid, str):
            versions.append(ObjectVersion(kind, name, uid, generation if isinstance(generation, int) else -1))
    return tuple(versions)


def _to_version(resource: Resource) -> ObjectVersion:
    generation = resource.generation if resource.kind == _TRIGGER else 0
    return ObjectVersion(resource.kind, resource.name, resource.uid, generation)


def _is_ready(resource: Resource) -> bool:
    """Return True if the controller reports an object's present version as ready."""
    ready = condition(resource.status, READY)
    observed = resource.status.get("observedGeneration", resource.generation)
    return ready is not None and ready.status == "True" and bool(observed == resource.generation)
