"""The surroundings of a namespace's tools: Brokers, Knative Services, Triggers, rules."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from beckon_contract.catalogue.builder import Router
from beckon_contract.knative.addresses import AddressBook, Unaddressable
from beckon_contract.knative.broker_class import BECKON_CLASS, class_of
from beckon_contract.knative.delivery import Delivery, Destination, Reference
from beckon_contract.knative.reply_triggers import (
    DEAD_LETTERS_PATH,
    PROGRESS_PATH,
    REPLIES_PATH,
    REPLY_ATTRIBUTE,
)
from beckon_contract.knative.routes import Listener
from beckon_contract.knative.triggers import InvalidResource, parse_broker
from beckon_contract.kubernetes_objects import READY, Condition, Resource, condition
from beckon_operator.conditions.last_ready import LastReady, ObjectVersion
from beckon_operator.objects import SERVING

_IN_CLUSTER = re.compile(r"([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\..+)?")
_PORTS = {"http": 80, "https": 443}


class UnwrittenTriggers:
    """Why the reply Triggers of some Brokers could not be written.

    `changed` is called with the namespace of a Broker that has another reason.
    """

    def __init__(self) -> None:
        self.changed: Callable[[str], None] = lambda _: None
        self._reasons: dict[tuple[str, str], str] = {}

    def find_reason(self, namespace: str, broker: str) -> str:
        """Return the reason of a Broker, "" if there is none."""
        return self._reasons.get((namespace, broker), "")

    def set_reason(self, namespace: str, broker: str, reason: str) -> bool:
        """Record a reason, "" for none; return True if it is another one."""
        if self.find_reason(namespace, broker) == reason:
            return False
        if reason:
            self._reasons[namespace, broker] = reason
        else:
            del self._reasons[namespace, broker]
        self.changed(namespace)
        return True


@dataclass(frozen=True, slots=True)
class JudgingRules:
    """The URL for replies and dead letters, and the reply attribute.

    An event with the reply attribute is a reply. `unwritten` is `None` if the operator does not write the
    Triggers for replies.
    """

    replies_url: str
    reply_attribute: str = REPLY_ATTRIBUTE
    cluster_domain: str = "cluster.local"
    unwritten: UnwrittenTriggers | None = None

    @property
    def origin(self) -> str:
        """The address of the shim, without a path."""
        return self.replies_url.rstrip("/")

    @property
    def replies(self) -> str:
        """The URL for replies."""
        return self.origin + REPLIES_PATH

    @property
    def progress(self) -> str:
        """The URL for progress reports."""
        return self.origin + PROGRESS_PATH

    @property
    def dead_letters(self) -> str:
        """The URL for dead letters."""
        return self.origin + DEAD_LETTERS_PATH


def same_place(one: str, other: str) -> bool:
    """Return True if two URLs lead to the same place.

    The cluster's domain, default ports and a last slash make no difference.
    """
    try:
        return _parse_place(one) == _parse_place(other)
    except ValueError:
        return False


def _parse_place(url: str) -> tuple[str, str, int | None, str]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    match = _IN_CLUSTER.fullmatch(host)
    if match:
        host = f"{match[1]}.{match[2]}.svc"
    return parts.scheme, host, parts.port or _PORTS.get(parts.scheme), parts.path.rstrip("/")


@dataclass(frozen=True, slots=True)
class BrokerView:
    """The properties of a Broker needed to judge calls.

    `delivery` is `None` if Knative would refuse the Broker. `last_ready` is the version in which it has been
    ready, `None` if it never was. `replies_arrive` is the result of its last probe, `None` without one.
    """

    resource: Resource
    ready: Condition | None
    delivery: Delivery | None
    last_ready: ObjectVersion | None = None
    replies_arrive: bool | None = None


class NamespaceView:
    """The surroundings of one namespace at one moment. After a change a new object is made."""

    def __init__(
        self,
        namespace: str,
        router: Router,
        brokers: Iterable[BrokerView],
        services: Iterable[Resource],
        rules: JudgingRules,
        *,
        last_ready: LastReady,
    ) -> None:
        known = list(services)
        self.namespace = namespace
        self.router = router
        self.rules = rules
        self.last_ready = last_ready
        self.brokers: Mapping[str, BrokerView] = {one.resource.name: one for one in brokers}
        self.services: Mapping[str, Resource] = {one.name: one for one in known}
        self._shared: dict[tuple[str, str], Condition] = {}
        self._book = AddressBook(known, rules.cluster_domain)

    def listeners_for(self, event_type: str) -> dict[str, Listener]:
        """Return the Triggers with a filter open to this type, by name."""
        candidates = self.router.table.candidates(self.namespace, event_type)
        return {listener.trigger.name: listener for listener in candidates}

    def reply_listeners(self, broker: str, attribute: str = "") -> list[Listener]:
        """Return the Triggers of a Broker for replies with this attribute, or the usual one, by name.

        A reply can be of any type, so a Trigger for one certain type passes only some replies and is not
        included.
        """
        reply = {
            "specversion": "1.0",
            "id": "reply",
            "source": "/tool",
            "type": "reply",
            attribute or self.rules.reply_attribute: "token",
        }
        untyped = self.router.table.untyped.get(self.namespace, ())
        listeners = [one for one in untyped if one.trigger.broker == broker and one.trigger.filter(reply)]
        return sorted(listeners, key=lambda listener: listener.trigger.name)

    def is_stamping(self, broker: str) -> bool:
        """Return True if a Broker writes the reply attribute into each reply itself."""
        return self.class_of(broker) == BECKON_CLASS

    def class_of(self, broker: str) -> str:
        """Return the class of a Broker, "" for the default one of the cluster."""
        view = self.brokers.get(broker)
        return "" if view is None else class_of(view.resource)

    def judge_once_per_broker(self, what: str, broker: str, judge: Callable[[], Condition]) -> Condition:
        """Return a condition shared by all tools of a Broker, judged once."""
        key = what, broker
        if key not in self._shared:
            self._shared[key] = judge()
        return self._shared[key]

    def url_of(self, destination: Destination, resolved: object = None) -> str:
        """Return the URL of a Destination, "" if it is unknown.

        `resolved` is the URL that Knative wrote in a status; a plain URI needs no resolution.
        """
        if destination.ref is None:
            return destination.uri or ""
        if isinstance(resolved, str) and resolved:
            return resolved
        try:
            return self._book.resolve(destination)
        except Unaddressable:
            return ""

    def subscriber_url(self, listener: Listener) -> str:
        """Return the URL to which a Trigger delivers, "" if it is unknown."""
        return self.url_of(listener.trigger.subscriber, listener.resource.status.get("subscriberUri"))

    def address_of(self, reference: Reference) -> str:
        """Return the URL of an object in this namespace; raise `Unaddressable`."""
        return self._book.resolve(Destination(ref=reference))


def is_knative_service(reference: Reference) -> bool:
    """Return True if a reference names a Service of Knative Serving."""
    return reference.kind == "Service" and reference.api_version.partition("/")[0] == SERVING


def view_broker(
    resource: Resource, last_ready: ObjectVersion | None, replies_arrive: bool | None
) -> BrokerView:
    """Return what is known of a Broker."""
    try:
        delivery = parse_broker(resource).delivery
    except InvalidResource:
        delivery = None
    ready = condition(resource.status, READY)
    return BrokerView(resource, ready, delivery, last_ready, replies_arrive)
