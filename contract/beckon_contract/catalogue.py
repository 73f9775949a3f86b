"""The catalogue: every EventType of a set of manifests, as a tool or with the reason why not."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from beckon_contract.delivery import Reference
from beckon_contract.eventtypes import (
    EventType,
    InvalidEventType,
    is_event_type,
    parse_event_type,
    why_no_tool,
)
from beckon_contract.names import Identity, assign_names
from beckon_contract.near_misses import NearMisses
from beckon_contract.options import TOOL_NAME, Options, is_broker, read_options
from beckon_contract.parameters import SchemaError, normalise
from beckon_contract.places import BrokenPlace, find_parameters
from beckon_contract.resources import Key, Resource, Unreadable
from beckon_contract.routes import (
    DEFAULT_CALLER,
    RouteTable,
    call_attributes,
    choose_broker,
    is_trigger,
    read_trigger,
    route_table,
)
from beckon_contract.tools import Refusal, Skipped, Tool

Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tools by the name that a model sees, in the order of names; what was refused; what is no tool.

    `table` holds the Triggers that the routes were found in.
    """

    tools: Mapping[str, Tool]
    refusals: tuple[Refusal, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    table: RouteTable = field(default_factory=RouteTable)


@dataclass(frozen=True, slots=True)
class Declared:
    """An EventType that is meant to be a tool, with usable parameters and options."""

    event_type: EventType
    options: Options
    parameters: Mapping[str, Any]
    parameters_from: str


def build_catalogue(resources: Iterable[Resource | Unreadable], caller: str = DEFAULT_CALLER) -> Catalogue:
    """Return the catalogue of these manifests; of two objects with one key the later counts.

    `caller` is the CloudEvents source of the agent. Nothing in a manifest makes this raise.
    """
    return CatalogueBuilder(caller).build(resources)


class CatalogueBuilder:
    """Builds catalogues again and again, reading only the objects that changed since the last time.

    Objects are compared by content: Knative changes the spec of an EventType without raising
    its generation when it converts between versions.
    """

    def __init__(self, caller: str = DEFAULT_CALLER) -> None:
        self._caller = caller
        self._event_types = _Memory(_declare)
        self._triggers = _Memory(read_trigger)

    def build(self, resources: Iterable[Resource | Unreadable]) -> Catalogue:
        """Return the catalogue of these manifests."""
        unreadable: list[Refusal] = []
        event_types: dict[Key, Resource] = {}
        triggers: dict[Key, Resource] = {}
        for resource in resources:
            if isinstance(resource, Unreadable):
                unreadable.append(Refusal("", "", "Unreadable", "", resource.message, resource.origin))
            elif is_event_type(resource):
                event_types[resource.key] = resource
            elif is_trigger(resource):
                triggers[resource.key] = resource
        # In the order of keys, so that messages name the same objects in any order of arrival.
        table = route_table(self._triggers.read(dict(sorted(triggers.items()))))
        return self._assemble(dict(sorted(event_types.items())), table, unreadable)

    def _assemble(
        self, event_types: Mapping[Key, Resource], table: RouteTable, refusals: list[Refusal]
    ) -> Catalogue:
        read = dict(zip(event_types, self._event_types.read(event_types), strict=True))
        names = assign_names(
            {
                _identity(key): _wanted_name(event_types[key])
                for key, found in read.items()
                if not isinstance(found, Skipped)
            }
        )
        router = _Router(table, self._caller)
        tools: dict[str, Tool] = {}
        skipped: list[Skipped] = []
        for key, found in read.items():
            if isinstance(found, Declared):
                name = names[_identity(key)]
                tool = router.route(name, found)
                if isinstance(tool, Tool):
                    tools[name] = tool
                else:
                    refusals.append(tool)
            elif isinstance(found, Refusal):
                refusals.append(found)
            else:
                skipped.append(found)
        return Catalogue(
            MappingProxyType(dict(sorted(tools.items()))),
            tuple(sorted(refusals, key=_place)),
            tuple(sorted(skipped, key=_place)),
            table,
        )


class _Memory(Generic[Read]):
    """What was read from each object, kept while the object stays as it is."""

    def __init__(self, read: Callable[[Resource], Read]) -> None:
        self._read = read
        self._known: dict[Key, tuple[Resource, Read]] = {}

    def read(self, resources: Mapping[Key, Resource]) -> list[Read]:
        """Return what was read from each object, in order; forget all others."""
        self._known = {key: self._entry(key, resource) for key, resource in resources.items()}
        return [read for _, read in self._known.values()]

    def _entry(self, key: Key, resource: Resource) -> tuple[Resource, Read]:
        known = self._known.get(key)
        if known is not None and known[0] == resource:
            return known
        return resource, self._read(resource)


class _Router:
    """Finds the way of each tool's call, or says why there is none."""

    def __init__(self, table: RouteTable, caller: str) -> None:
        self._table = table
        self._caller = caller
        self._near_misses = NearMisses(table)

    def route(self, name: str, declared: Declared) -> Tool | Refusal:
        """Return the tool with its Triggers, or the refusal where no Trigger passes its call."""
        event_type = declared.event_type
        reference = event_type.reference
        direct = declared.options.dispatch == "direct"
        called = reference if reference is not None and (direct or is_broker(reference)) else None
        if called is not None and called.namespace != event_type.namespace:
            return _refusal(event_type, "OtherNamespace", "spec.reference.namespace", _elsewhere(called))
        if direct:
            return _tool(name, declared, choose_broker(event_type.broker, ()), ())
        attributes = call_attributes(event_type.type, event_type.source, self._caller)
        passing = [
            found for found in self._table.passing(event_type.namespace, attributes) if not found.not_ready
        ]
        broker = choose_broker(_stated_broker(event_type), passing)
        routes = tuple(found.trigger.name for found in passing if found.trigger.broker == broker)
        if not routes:
            message = self._near_misses.explain(event_type.namespace, broker, attributes)
            return _refusal(event_type, "NotRouted", "spec.type", message)
        return _tool(name, declared, broker, routes)


def _declare(resource: Resource) -> Declared | Refusal | Skipped:
    """Read an EventType on its own, without its name and its way."""
    try:
        event_type = parse_event_type(resource)
        why = why_no_tool(event_type)
        if why is not None:
            return Skipped(resource.name, resource.namespace, why[0], why[1], resource.origin)
        options = read_options(event_type)
        found = find_parameters(event_type)
        return Declared(event_type, options, _parameters(found.document, found.place), found.place)
    except InvalidEventType as error:
        first, *others = error.problems
        message = "; ".join([first.message, *map(str, others)])
        return Refusal(resource.name, resource.namespace, error.reason, first.path, message, resource.origin)
    except BrokenPlace as error:
        return Refusal(
            resource.name, resource.namespace, error.reason, error.place, error.message, resource.origin
        )


def _parameters(document: object, place: str) -> Mapping[str, Any]:
    try:
        return normalise(document)
    except SchemaError as error:
        raise BrokenPlace(
            f"{place}#{error.path}" if error.path else place, error.reason, error.message
        ) from None


def _tool(name: str, declared: Declared, broker: str, routes: tuple[str, ...]) -> Tool:
    event_type, options = declared.event_type, declared.options
    return Tool(
        name=name,
        namespace=event_type.namespace,
        event_type=event_type.name,
        type=event_type.type,
        source=event_type.source,
        description=event_type.description,
        parameters=declared.parameters,
        parameters_from=declared.parameters_from,
        timeout=options.timeout,
        requires_approval=options.requires_approval,
        dispatch=options.dispatch,
        idempotent=options.idempotent,
        read_only=options.read_only,
        broker=broker,
        routes=routes,
        reference=event_type.reference,
        labels=event_type.labels,
        origin=event_type.origin,
    )


def _elsewhere(reference: Reference) -> str:
    # A call into another namespace would reach what the EventType's own has no say in.
    return (
        f"names {reference.kind} {reference.namespace}/{reference.name}; a tool is called in its own "
        f"namespace, so write the EventType in namespace {reference.namespace}"
    )


def _stated_broker(event_type: EventType) -> str | None:
    """Return the Broker that an EventType names; `spec.broker` is the older way to write it."""
    if event_type.broker is not None:
        return event_type.broker
    reference = event_type.reference
    return reference.name if reference is not None and is_broker(reference) else None


def _identity(key: Key) -> Identity:
    return Identity(key.namespace, key.name)


def _wanted_name(resource: Resource) -> str:
    return resource.annotations.get(TOOL_NAME, "").strip() or resource.name


def _refusal(event_type: EventType, reason: str, field_path: str, message: str) -> Refusal:
    return Refusal(event_type.name, event_type.namespace, reason, field_path, message, event_type.origin)


def _place(found: Refusal | Skipped) -> tuple[str, str, str, str]:
    return found.namespace, found.event_type, found.origin, found.message
