"""The valid version of every Trigger and Broker.

An invalid one counts with its last valid version. In a cluster Knative's webhook refuses an invalid edit
and the object stays as it was; a folder has no webhook, so the same is done here while reading.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from beckon_contract.knative.triggers import (
    GROUP,
    Broker,
    InvalidResource,
    Trigger,
    parse_broker,
    parse_trigger,
)
from beckon_contract.kubernetes_objects import Key, Resource


@dataclass(frozen=True, slots=True)
class NotReady:
    """A Trigger or Broker not ready: a CamelCase reason, cause and cure."""

    key: Key
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects in manifests: valid Brokers and Triggers, all resources, refusals."""

    resources: tuple[Resource, ...] = ()
    brokers: tuple[Broker, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    refusals: tuple[NotReady, ...] = ()


class Admission:
    """Remembers the last valid version of every described Trigger and Broker."""

    def __init__(self) -> None:
        self._brokers: Mapping[Key, Broker] = {}
        self._triggers: Mapping[Key, Trigger] = {}

    def review(self, resources: Iterable[Resource]) -> Objects:
        """Return the objects described by resources; the last counts for each key."""
        latest = {resource.key: resource for resource in resources}
        brokers: dict[Key, Broker] = {}
        triggers: dict[Key, Trigger] = {}
        refusals: list[NotReady] = []
        for key, resource in latest.items():
            try:
                if (key.group, key.kind) == (GROUP, "Broker"):
                    brokers[key] = parse_broker(resource)
                elif (key.group, key.kind) == (GROUP, "Trigger"):
                    triggers[key] = parse_trigger(resource)
            except InvalidResource as error:
                refusals.append(self._refuse(resource, error, brokers, triggers))
        self._brokers, self._triggers = brokers, triggers
        return Objects(
            tuple(latest.values()), tuple(brokers.values()), tuple(triggers.values()), tuple(refusals)
        )

    def _refuse(
        self,
        resource: Resource,
        error: InvalidResource,
        brokers: dict[Key, Broker],
        triggers: dict[Key, Trigger],
    ) -> NotReady:
        """Keep the last valid version; return the problem of the new one."""
        key, fate = resource.key, "it is left out"
        if key in self._brokers:
            brokers[key], fate = self._brokers[key], "its last valid version stays in force"
        if key in self._triggers:
            triggers[key], fate = self._triggers[key], "its last valid version stays in force"
        return NotReady(key, "InvalidSpec", f"{error} (in {resource.origin}; {fate})")
