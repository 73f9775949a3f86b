"""The Brokers and Triggers in the manifests: read, and routed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from beckon_broker.envelope import BrokerName
from beckon_contract.cloudevents.events import AttributeValue
from beckon_contract.cloudevents.extensions import to_text
from beckon_contract.knative.addresses import AddressBook, Unaddressable
from beckon_contract.knative.delivery import DEFAULT_DELIVERY, Delivery
from beckon_contract.knative.filters import EventFilter
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


@dataclass(frozen=True, slots=True)
class Subscription:
    """A ready Trigger: its filter, its subscriber URL and its delivery options.

    An `ordered` Trigger gets one event after the other. `required` are attributes without which no event
    passes the filter. `has_own_delivery` is true if the delivery options are the Trigger's own, and not
    its Broker's.
    """

    key: Key
    broker: BrokerName
    filter: EventFilter
    subscriber: str
    delivery: Delivery
    dead_letter: str | None
    required: Mapping[str, str] = field(default_factory=dict)
    has_own_delivery: bool = False
    ordered: bool = False


class Routes:
    """The Triggers of one Broker, indexed by an attribute that each requires.

    So an event is compared with the Triggers that it may match, and not with all of them.
    """

    def __init__(self, subscriptions: Iterable[Subscription]) -> None:
        self._by_value: dict[tuple[str, str], list[Subscription]] = {}
        self._by_presence: dict[str, list[Subscription]] = {}
        self._others: list[Subscription] = []
        for subscription in subscriptions:
            self._group(subscription.required).append(subscription)

    def passing(self, attributes: Mapping[str, AttributeValue]) -> list[Subscription]:
        """Return the Triggers that pass an event with these attributes."""
        candidates = list(self._others)
        for name, value in attributes.items():
            candidates += self._by_value.get((name, to_text(value)), ())
            candidates += self._by_presence.get(name, ())
        return [each for each in candidates if each.filter(attributes)]

    def _group(self, required: Mapping[str, str]) -> list[Subscription]:
        """Return the list for a Trigger: by the most selective attribute that it requires."""
        exact = sorted((name for name, want in required.items() if want), key=_selectivity)
        if exact:
            return self._by_value.setdefault((exact[0], required[exact[0]]), [])
        if required:
            return self._by_presence.setdefault(min(required), [])
        return self._others


_SELECTIVE = ("id", "type", "subject")


def _selectivity(name: str) -> tuple[int, str]:
    """Sort attributes by how few events of a Broker usually share a value."""
    position = _SELECTIVE.index(name) if name in _SELECTIVE else len(_SELECTIVE)
    return position, name


@dataclass(frozen=True, slots=True)
class Topology:
    """All Brokers with their ready Triggers, and the objects not ready."""

    brokers: Mapping[BrokerName, tuple[Subscription, ...]] = field(default_factory=dict)
    not_ready: tuple[NotReady, ...] = ()

    def subscriptions(self) -> list[Subscription]:
        """Return the ready Triggers of all Brokers."""
        return [subscription for group in self.brokers.values() for subscription in group]


def build_topology(objects: Objects, base_url: str) -> Topology:
    """Return the Brokers and Triggers of these objects.

    `base_url` is where this broker listens: a Broker that publishes no address of its own is
    addressed there, so that it can be a subscriber or a dead-letter sink.
    """
    addresses = AddressBook(_addressed(resource, base_url) for resource in objects.resources)
    deliveries = {BrokerName(each.namespace, each.name): each.delivery for each in objects.brokers}
    invalid = {BrokerName(*each.key[2:]) for each in objects.refusals if each.key.kind == "Broker"}
    brokers: dict[BrokerName, list[Subscription]] = {broker: [] for broker in deliveries}
    not_ready = list(objects.refusals)
    for trigger in objects.triggers:
        broker = BrokerName(trigger.namespace, trigger.broker)
        if broker in invalid and broker not in deliveries:
            not_ready.append(NotReady(trigger.key, "BrokerNotReady", f"the Broker {broker} is invalid"))
            continue
        subscriptions = brokers.setdefault(broker, [])
        delivery = trigger.delivery or deliveries.get(broker, DEFAULT_DELIVERY)
        subscription = _subscribe(trigger, broker, delivery, addresses)
        if isinstance(subscription, Subscription):
            subscriptions.append(subscription)
        else:
            not_ready.append(subscription)
    return Topology({broker: tuple(found) for broker, found in brokers.items()}, tuple(not_ready))


def ingress_url(base_url: str, broker: BrokerName) -> str:
    """Return the ingress URL of a broker."""
    return f"{base_url}/{broker}"


def _subscribe(
    trigger: Trigger, broker: BrokerName, delivery: Delivery, addresses: AddressBook
) -> Subscription | NotReady:
    """Find the addresses a Trigger needs; its own delivery has replaced the Broker's whole."""
    try:
        subscriber = addresses.resolve(trigger.subscriber)
    except Unaddressable as error:
        return NotReady(trigger.key, "SubscriberUnresolved", f"spec.subscriber: {error}")
    dead_letter = None
    if delivery.dead_letter is not None:
        try:
            dead_letter = addresses.resolve(delivery.dead_letter)
        except Unaddressable as error:
            whose = "spec" if trigger.delivery else f"the Broker's ({broker}) spec"
            message = f"{whose}.delivery.deadLetterSink: {error}"
            return NotReady(trigger.key, "DeadLetterSinkUnresolved", message)
    return Subscription(
        trigger.key,
        broker,
        trigger.filter,
        subscriber,
        delivery,
        dead_letter,
        trigger.required,
        has_own_delivery=trigger.delivery is not None,
        ordered=trigger.ordered,
    )


def _addressed(resource: Resource, base_url: str) -> Resource:
    """Give a Broker without an address its ingress URL in this process."""
    publishes = "address" in resource.status or "addresses" in resource.status
    if (resource.group, resource.kind) != (GROUP, "Broker") or publishes:
        return resource
    url = ingress_url(base_url, BrokerName(resource.namespace, resource.name))
    return replace(resource, status={**resource.status, "address": {"url": url}})
