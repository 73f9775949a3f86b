"""The routes of tool calls through Triggers to services.

A Trigger gets the events of one Broker in its own namespace. Triggers are indexed by the exact type in
their filter, so thousands of them cost no more than the few that could match.
The operator writes the routes into the status of a Tool, for people: no call depends on them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from beckon_contract.cloudevents.events import AttributeValue
from beckon_contract.fields import FieldProblem
from beckon_contract.knative.delivery import Delivery, Reference
from beckon_contract.knative.filters import passes_all
from beckon_contract.knative.triggers import GROUP, InvalidResource, Trigger, parse_trigger
from beckon_contract.kubernetes_objects import READY, Resource, condition

DEFAULT_BROKER = "default"
DEFAULT_CALLER = "/beckon/agents/default/beckon"

_TYPE_EQUALS = re.compile(r"\s*type\s*=\s*(['\"])([^'\"\\]+)\1\s*")

Attributes = Mapping[str, AttributeValue]


@dataclass(frozen=True, slots=True)
class Listener:
    """A Trigger as a possible route of calls.

    `wanted_type` is the one type its filter can pass, `None` if there is no such type. `not_ready` is the
    reason in its status for taking no events, empty if there is none. `unavailable` is the same for a
    Trigger that routes all the same, since it took events before as it is written now.
    """

    resource: Resource
    trigger: Trigger
    wanted_type: str | None
    not_ready: str
    unavailable: str = ""

    @property
    def catches_all(self) -> bool:
        """True if the Trigger has no filter: it gets every event, replies too."""
        return self.trigger.filter is passes_all

    @property
    def asks_for(self) -> str:
        """The filter of the Trigger, in few words."""
        if self.catches_all:
            return "any event"
        spec = self.resource.spec
        legacy = spec.get("filter")
        attributes = legacy.get("attributes") if isinstance(legacy, Mapping) else None
        if isinstance(attributes, Mapping) and not spec.get("filters"):
            return ", ".join(f"{name} = {value}" for name, value in sorted(attributes.items()))[:200]
        return f"type = {self.wanted_type}" if self.wanted_type else "by its own filters"


@dataclass(frozen=True, slots=True)
class BrokenTrigger:
    """A Trigger refused by Knative, with the reasons."""

    resource: Resource
    problems: tuple[FieldProblem, ...]


@dataclass(slots=True)
class RouteTable:
    """The Triggers of a set of manifests, indexed for calls."""

    by_type: dict[tuple[str, str], list[Listener]] = field(default_factory=dict)
    untyped: dict[str, list[Listener]] = field(default_factory=dict)
    broken: list[BrokenTrigger] = field(default_factory=list)

    def candidates(self, namespace: str, event_type: str) -> list[Listener]:
        """Return the Triggers of a namespace with filters possibly passing this type."""
        return [*self.by_type.get((namespace, event_type), ()), *self.untyped.get(namespace, ())]

    def passing(self, namespace: str, attributes: Attributes) -> list[Listener]:
        """Return the Triggers of a namespace passing this event, by name, ready or not."""
        passing = [
            listener
            for listener in self.candidates(namespace, str(attributes["type"]))
            if listener.trigger.filter(attributes)
        ]
        return sorted(passing, key=lambda listener: listener.trigger.name)


def is_trigger(resource: Resource) -> bool:
    """Return True if an object is a Knative Trigger of any version."""
    return resource.group == GROUP and resource.kind == "Trigger"


def read_trigger(resource: Resource, *, controlled: bool = False) -> Listener | BrokenTrigger:
    """Read a Trigger for the table.

    One that Knative would refuse is returned with its problems. If a controller judges Triggers
    (`controlled`), a Trigger takes events only once it is Ready; otherwise it does unless it is said not to
    be Ready.
    """
    try:
        trigger = parse_trigger(resource)
    except InvalidResource as error:
        return BrokenTrigger(resource, error.problems)
    return Listener(
        resource, trigger, wanted_type(resource.spec), _not_ready(resource, controlled=controlled)
    )


def route_table(triggers: Iterable[Listener | BrokenTrigger]) -> RouteTable:
    """Index Triggers by namespace and by their exact type."""
    table = RouteTable()
    for trigger in triggers:
        if isinstance(trigger, BrokenTrigger):
            table.broken.append(trigger)
        elif trigger.wanted_type is None:
            table.untyped.setdefault(trigger.trigger.namespace, []).append(trigger)
        else:
            key = trigger.trigger.namespace, trigger.wanted_type
            table.by_type.setdefault(key, []).append(trigger)
    return table


def call_attributes(
    event_type: str, source: str | None, caller: str = DEFAULT_CALLER
) -> dict[str, AttributeValue]:
    """Return the context attributes of a tool's call.

    They are those of the call when it reaches the Broker. Values that differ from call to call are
    placeholders: filters ask only for their presence.
    """
    return {
        "specversion": "1.0",
        "id": "call",
        "type": event_type,
        "source": source or caller,
        "datacontenttype": "application/json",
        "correlationid": "token",
        "expirytime": "2030-01-01T00:00:00Z",
        "traceparent": "00-00000000000000000000000000000001-0000000000000001-01",
    }


def choose_broker(stated: str | None, listeners: Iterable[Listener]) -> str:
    """Return the Broker to call.

    It is the stated one, or else one of the Brokers of these Triggers: the default Broker if it is among
    them, or the first by name. Without Triggers it is the default Broker.
    """
    if stated is not None:
        return stated
    brokers = {listener.trigger.broker for listener in listeners}
    return DEFAULT_BROKER if DEFAULT_BROKER in brokers or not brokers else min(brokers)


def wanted_type(spec: Mapping[str, object]) -> str | None:
    """Return the only type a Trigger's filter can pass.

    The result is `None` if no type is certain.

    `filters` replaces `filter`, and an `exact` element with an empty value decides nothing.
    """
    filters, legacy = spec.get("filters"), spec.get("filter")
    if isinstance(filters, list) and filters:
        return _common_type(filters)
    return _type_of(legacy.get("attributes")) if isinstance(legacy, Mapping) else None


def _common_type(elements: list[object]) -> str | None:
    """Return the type required by one of several filter elements. All of them have to pass."""
    for element in elements:
        if not isinstance(element, Mapping):
            continue
        exact, expression = element.get("exact"), element.get("cesql")
        if isinstance(expression, str) and (match := _TYPE_EQUALS.fullmatch(expression)):
            return match[2]
        if isinstance(exact, Mapping) and "" not in exact.values() and (wanted := _type_of(exact)):
            return wanted
    return None


def _type_of(attributes: object) -> str | None:
    value = attributes.get("type") if isinstance(attributes, Mapping) else None
    return value if isinstance(value, str) and value else None


def _not_ready(resource: Resource, *, controlled: bool) -> str:
    """Return why a Trigger takes no events, empty if it does. Its Ready condition decides."""
    ready = condition(resource.status, READY)
    if ready is None:
        return "Knative has not judged it yet" if controlled else ""
    if ready.status == "True" or (ready.status != "False" and not controlled):
        return ""
    return ready.words or "not ready"


FIELD = "routes"


@dataclass(frozen=True, slots=True)
class CallRoute:
    """One Trigger of a tool's calls.

    `filter` is what it asks for, in few words; `subscriber` the object that it leads to, `None` for a plain
    URI; `address` the origin (`http://HOST:PORT`) to which it delivers, empty if it is not known. `retries`
    counts the attempts after the first, `dead_letters` says whether a call that cannot be delivered goes on
    to a sink; both are `None` if they are not known.
    """

    trigger: str
    filter: str = ""
    subscriber: Reference | None = None
    address: str = ""
    retries: int | None = None
    dead_letters: bool | None = None

    def service(self, namespace: str) -> str:
        """Return the subscriber's name, as written in this namespace.

        Without a subscriber it is the host and port of the address.
        """
        if self.subscriber is None:
            return _host(self.address)
        kind, name = self.subscriber.kind, self.subscriber.name
        prefix = "" if self.subscriber.namespace == namespace else f"{self.subscriber.namespace}/"
        return f"{prefix}{name}" if kind == "Service" else f"{kind} {prefix}{name}"


def make_route(listener: Listener, broker: Delivery | None, address: str) -> CallRoute:
    """Return the route of a Trigger.

    Its own delivery replaces that of its Broker as a whole. Only the origin of the address is stored: paths
    and queries of webhooks are as good as keys.
    """
    delivery = listener.trigger.delivery or broker
    return CallRoute(
        listener.trigger.name,
        listener.asks_for,
        listener.trigger.subscriber.ref,
        _origin(address),
        delivery.retry if delivery else None,
        delivery.dead_letter is not None if delivery else None,
    )


def route_document(route: CallRoute) -> dict[str, Any]:
    """Return a route for the status of a Tool, without unknown values."""
    subscriber = route.subscriber
    optional: dict[str, Any] = {
        "filter": route.filter or None,
        "address": route.address or None,
        "retries": route.retries,
        "deadLetters": route.dead_letters,
        "subscriber": subscriber
        and {
            "apiVersion": subscriber.api_version,
            "kind": subscriber.kind,
            "namespace": subscriber.namespace,
            "name": subscriber.name,
        },
    }
    return {"trigger": route.trigger} | {name: value for name, value in optional.items() if value is not None}


def read_routes(status: Mapping[str, Any]) -> list[CallRoute]:
    """Return the routes in the status of a Tool. There are none if an older operator wrote it."""
    written = status.get(FIELD)
    return list(_read(written)) if isinstance(written, list) else []


def _read(written: list[object]) -> Iterator[CallRoute]:
    for one in written:
        if isinstance(one, Mapping) and (trigger := _text(one, "trigger")):
            retries, dead_letters = one.get("retries"), one.get("deadLetters")
            yield CallRoute(
                trigger,
                _text(one, "filter"),
                _reference(one.get("subscriber")),
                _text(one, "address"),
                retries if isinstance(retries, int) and not isinstance(retries, bool) else None,
                dead_letters if isinstance(dead_letters, bool) else None,
            )


def _reference(value: object) -> Reference | None:
    if not isinstance(value, Mapping) or not _text(value, "name"):
        return None
    return Reference(*(_text(value, name) for name in ("apiVersion", "kind", "namespace", "name")))


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _origin(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}" if host else ""


def _host(address: str) -> str:
    return address.partition("://")[2]
