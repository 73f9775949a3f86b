"""Sources of tools: the catalogue, and the conditions of each tool."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from beckon_agent.tools.explain import (
    ANSWERABLE,
    DEAD_LETTERED,
    DECLARED,
    ROUTED,
    CallRoute,
    Explanation,
    delivery_words,
    route_stations,
)
from beckon_contract.catalogue.annotations import DISPATCH
from beckon_contract.catalogue.builder import Catalogue
from beckon_contract.catalogue.check import (
    check_broker,
    check_event_type,
    check_loop,
    check_tool,
    check_trigger,
)
from beckon_contract.catalogue.diagnostics import Finding
from beckon_contract.knative.addresses import AddressBook, Unaddressable
from beckon_contract.knative.delivery import Delivery, Destination, Reference
from beckon_contract.knative.eventtypes import GROUP, InvalidEventType, parse_event_type
from beckon_contract.knative.reply_triggers import REPLY_ATTRIBUTE
from beckon_contract.knative.routes import Listener, call_attributes, choose_broker
from beckon_contract.knative.triggers import InvalidResource, parse_broker
from beckon_contract.kubernetes_objects import Condition, Key, Resource
from beckon_contract.resources.tools import Refusal, Skipped, Tool, ready_from


class CatalogueSource(Protocol):
    """A source of an up-to-date catalogue."""

    @property
    def current(self) -> Catalogue:
        """The current catalogue; never blocks or raises.

        The returned catalogue is never changed afterwards.
        """
        ...

    def explain(self, namespace: str, event_type: str) -> Explanation | None:
        """Return the explanation of an EventType, `None` for an unknown one. Never blocks or raises."""
        ...


def with_addresses(catalogue: Catalogue, resources: Iterable[Resource]) -> Catalogue:
    """Return the catalogue with the addresses of directly called tools.

    The address is that of the object named by `spec.reference`. Tools without one are refused, so that no
    model is offered them; in a cluster the operator does both.
    """
    if all(tool.dispatch != "direct" for tool in catalogue.tools.values()):
        return catalogue
    book = AddressBook(resources)
    tools: dict[str, Tool] = {}
    refusals: list[Refusal] = []
    for name, tool in catalogue.tools.items():
        addressed = _with_address(tool, book)
        if isinstance(addressed, Tool):
            tools[name] = addressed
        else:
            refusals.append(addressed)
    return replace(catalogue, tools=tools, refusals=(*catalogue.refusals, *refusals))


def _with_address(tool: Tool, book: AddressBook) -> Tool | Refusal:
    if tool.dispatch != "direct" or tool.address:
        return tool
    try:
        return replace(tool, address=book.resolve(Destination(tool.reference)))
    except Unaddressable as error:
        message = f"{error}; the annotation {DISPATCH} sends calls straight to it"
        return Refusal(
            tool.event_type, tool.namespace, "AddressUnknown", "spec.reference", message, tool.origin
        )


_UNROUTED = frozenset(
    {
        "AddressUnknown",
        "FilterMismatch",
        "InvalidTrigger",
        "NoTrigger",
        "OtherBroker",
        "OtherNamespace",
        "TriggerNotReady",
    }
)


class Judge:
    """Explains the EventTypes of a set of manifests, each on request."""

    def __init__(self, catalogue: Catalogue, resources: Iterable[Resource], caller: str) -> None:
        self._resources: Mapping[Key, Resource] = {resource.key: resource for resource in resources}
        self._book = AddressBook(self._resources.values())
        self._table = catalogue.table
        self._caller = caller
        entries: Iterable[Tool | Refusal | Skipped] = (
            *catalogue.tools.values(),
            *catalogue.refusals,
            *catalogue.skipped,
        )
        self._entries = {(one.namespace, one.event_type): one for one in entries}

    def explain(self, namespace: str, event_type: str) -> Explanation | None:
        """Return the explanation of an EventType, `None` for an unknown one."""
        resource = self._resources.get(Key(GROUP, "EventType", namespace, event_type))
        entry = self._entries.get((namespace, event_type))
        if resource is None or entry is None:
            return None
        type_, source, broker_name, description, reference = _read_spec(resource)
        listeners = self._find_listeners(namespace, type_, source) if type_ else []
        ready = [one for one in listeners if not one.not_ready]
        broker = entry.broker if isinstance(entry, Tool) else choose_broker(broker_name, ready or listeners)
        direct = resource.annotations.get(DISPATCH) == "direct"  # also if it is refused
        passing = [one for one in listeners if one.trigger.broker == broker and not direct]
        conditions = self._judge_conditions(entry, namespace, broker, direct=direct)
        delivery = self._delivery_of(namespace, broker)
        routes = [self._route_to(one, delivery) for one in passing]
        if direct:
            routes = [self._direct_route(reference)]
        return Explanation(
            namespace,
            event_type,
            type_,
            description,
            conditions,
            route_stations(event_type, type_, broker, routes, conditions, direct=direct),
            tuple(self._find_problems(resource, entry, passing, broker)),
        )

    def _find_listeners(self, namespace: str, type_: str, source: str | None) -> list[Listener]:
        return self._table.passing(namespace, call_attributes(type_, source, self._caller))

    def _delivery_of(self, namespace: str, broker: str) -> Delivery | None:
        """Return the delivery of a Broker, `None` without a valid manifest.

        Valid is a manifest that Knative would take.
        """
        resource = self._resources.get(Key(GROUP, "Broker", namespace, broker))
        try:
            return parse_broker(resource).delivery if resource else None
        except InvalidResource:
            return None

    def _route_to(self, listener: Listener, broker: Delivery | None) -> CallRoute:
        trigger, subscriber = listener.trigger, listener.trigger.subscriber
        name = subscriber.ref.name if subscriber.ref else subscriber.uri or ""
        try:
            address, problem = self._book.resolve(subscriber), ""
        except Unaddressable as error:
            address, problem = "", str(error)
        delivery = trigger.delivery or broker
        words = delivery_words(delivery.retry, delivery.dead_letter is not None) if delivery else ""
        return CallRoute(trigger.name, listener.asks_for, name, address, problem, words)

    def _direct_route(self, reference: Reference | None) -> CallRoute:
        name = reference.name if reference else ""
        try:
            address = self._book.resolve(Destination(reference))
        except Unaddressable as error:
            return CallRoute("", service=name, problem=str(error))
        return CallRoute("", service=name, address=address)

    def _judge_conditions(
        self, entry: Tool | Refusal | Skipped, namespace: str, broker: str, *, direct: bool
    ) -> list[Condition]:
        if not isinstance(entry, Tool) and entry.reason not in _UNROUTED:
            field = f"{entry.field}: " if isinstance(entry, Refusal) and entry.field else ""
            declared = Condition(DECLARED, "False", entry.reason, f"{field}{entry.message}")
            later = [
                Condition(name, "Unknown", "NotDeclared", "judged once the EventType is declared")
                for name in (ROUTED, ANSWERABLE, DEAD_LETTERED)
            ]
            return [declared, *later, ready_from([declared])]
        read = f"parameters read from {entry.parameters_from}" if isinstance(entry, Tool) else ""
        judged = [
            Condition(DECLARED, "True", "Declared", read),
            _routed_condition(entry),
            self._judge_answerable(namespace, broker, direct=direct),
        ]
        # Replies may be arranged outside of these manifests.
        ready = ready_from([one for one in judged if one.status != "Unknown"])
        return [*judged, self._dead_lettered(namespace, broker, direct=direct), ready]

    def _judge_answerable(self, namespace: str, broker: str, *, direct: bool) -> Condition:
        if direct:
            return Condition(ANSWERABLE, "True", "Direct", "the reply comes in the answer to the call")
        reply = {**call_attributes("reply", None, self._caller), REPLY_ATTRIBUTE: "token"}
        for listener in self._table.passing(namespace, reply):
            if listener.trigger.broker == broker and not (listener.catches_all or listener.not_ready):
                message = f"Trigger {listener.trigger.name} brings replies to the shim"
                return Condition(ANSWERABLE, "True", "ReplyTrigger", message)
        message = (
            f"no Trigger of these manifests asks for the attribute {REPLY_ATTRIBUTE!r} of Broker {broker}, "
            "which brings replies to the shim; beckon up writes one"
        )
        return Condition(ANSWERABLE, "Unknown", "NoReplyTrigger", message)

    def _dead_lettered(self, namespace: str, broker: str, *, direct: bool) -> Condition:
        if direct:
            return Condition(DEAD_LETTERED, "True", "Direct", "a failure comes in the answer to the call")
        delivery = self._delivery_of(namespace, broker)
        if delivery is None:
            message = f"no manifest holds the Broker {broker}, so it is unknown"
            return Condition(DEAD_LETTERED, "Unknown", "BrokerNotFound", message)
        if delivery.dead_letter is None:
            message = f"name the shim in spec.delivery.deadLetterSink of Broker {broker}"
            return Condition(DEAD_LETTERED, "False", "NoDeadLetterSink", message)
        return Condition(DEAD_LETTERED, "True", "ToShim", "an undeliverable call is reported at once")

    def _find_problems(
        self, resource: Resource, entry: Tool | Refusal | Skipped, passing: list[Listener], broker: str
    ) -> Iterator[Finding]:
        """Yield the findings about an EventType and the route of its calls.

        A refusal is a condition already, and no finding.
        """
        yield from check_event_type(resource)
        if isinstance(entry, Tool):
            yield from check_tool(entry, resource, passing)
        for listener in passing:
            yield from check_trigger(listener.resource)
            if isinstance(entry, Tool):
                yield from check_loop(listener, entry.type)
        written = self._resources.get(Key(GROUP, "Broker", resource.namespace, broker))
        if written is not None:
            yield from check_broker(written)


def _routed_condition(entry: Tool | Refusal | Skipped) -> Condition:
    if not isinstance(entry, Tool):
        return Condition(ROUTED, "False", entry.reason, entry.message)
    if entry.dispatch == "direct":
        return Condition(ROUTED, "True", "Direct", f"calls go to {entry.address}")
    triggers = ", ".join(entry.routes[:3])
    return Condition(ROUTED, "True", ROUTED, f"Broker {entry.broker}, Trigger {triggers}")


def _read_spec(resource: Resource) -> tuple[str, str | None, str | None, str, Reference | None]:
    """Return type, source, Broker, description and reference of an EventType.

    Missing ones are empty or `None`.
    """
    try:
        read = parse_event_type(resource)
    except InvalidEventType:
        description = resource.spec.get("description")
        return "", None, None, description if isinstance(description, str) else "", None
    return read.type, read.source, read.broker, read.description, read.reference
