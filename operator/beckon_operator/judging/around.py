"""What lies around the tools of one namespace: Brokers, Knative Services, and the Triggers by name."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from beckon_contract.addresses import AddressBook, Unaddressable
from beckon_contract.conditions import READY, Condition, condition
from beckon_contract.delivery import Delivery, Destination, Reference
from beckon_contract.entries import Router
from beckon_contract.resources import Resource
from beckon_contract.routes import Listener
from beckon_contract.triggers import InvalidResource, parse_broker
from beckon_operator.judging.last_ready import LastReady, ObjectVersion
from beckon_operator.judging.rules import Rules

SERVING = "serving.knative.dev"


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A Broker as far as calls depend on it; `delivery` is `None` where Knative would refuse the Broker.

    `last_ready` is the version in which it has been ready, `None` where it never was.
    """

    resource: Resource
    ready: Condition | None
    delivery: Delivery | None
    last_ready: ObjectVersion | None = None


class Around:
    """The surroundings of one namespace at one moment; whenever one of them changes, there is another."""

    def __init__(
        self,
        namespace: str,
        router: Router,
        brokers: Iterable[Resource],
        services: Iterable[Resource],
        rules: Rules,
        *,
        last_ready: LastReady,
    ) -> None:
        known = list(services)
        self.namespace = namespace
        self.router = router
        self.rules = rules
        self.last_ready = last_ready
        self.brokers: Mapping[str, BrokerView] = {
            one.name: _view(one, last_ready.broker(one.name)) for one in brokers
        }
        self.services: Mapping[str, Resource] = {one.name: one for one in known}
        self._shared: dict[tuple[str, str], Condition] = {}
        self._book = AddressBook(known, rules.cluster_domain)

    def listeners(self, event_type: str) -> dict[str, Listener]:
        """Return the Triggers whose filter could pass this type, by name."""
        found = self.router.table.candidates(self.namespace, event_type)
        return {listener.trigger.name: listener for listener in found}

    def reply_listeners(self, broker: str) -> list[Listener]:
        """Return the Triggers of a Broker that pass a reply, by name.

        A reply can be of any type, so what asks for one certain type passes only some of them.
        """
        reply = {
            "specversion": "1.0",
            "id": "reply",
            "source": "/tool",
            "type": "reply",
            self.rules.reply_attribute: "token",
        }
        untyped = self.router.table.untyped.get(self.namespace, ())
        found = [one for one in untyped if one.trigger.broker == broker and one.trigger.filter(reply)]
        return sorted(found, key=lambda listener: listener.trigger.name)

    def once_a_broker(self, what: str, broker: str, judge: Callable[[], Condition]) -> Condition:
        """Return a condition that all tools of a Broker share, judged once."""
        key = what, broker
        if key not in self._shared:
            self._shared[key] = judge()
        return self._shared[key]

    def url(self, destination: Destination, resolved: object = None) -> str:
        """Return where a Destination leads, "" where that is unknown.

        `resolved` is what Knative wrote of it in a status; a plain URI needs nobody to resolve it.
        """
        if destination.ref is None:
            return destination.uri or ""
        if isinstance(resolved, str) and resolved:
            return resolved
        try:
            return self._book.resolve(destination)
        except Unaddressable:
            return ""

    def address(self, reference: Reference) -> str:
        """Return the URL of an object in this namespace; raise `Unaddressable`."""
        return self._book.resolve(Destination(ref=reference))


def is_knative_service(reference: Reference) -> bool:
    """Whether a reference names a Service of Knative Serving."""
    return reference.kind == "Service" and reference.api_version.partition("/")[0] == SERVING


def _view(resource: Resource, last_ready: ObjectVersion | None) -> BrokerView:
    try:
        delivery = parse_broker(resource).delivery
    except InvalidResource:
        delivery = None
    return BrokerView(resource, condition(resource.status, READY), delivery, last_ready)
