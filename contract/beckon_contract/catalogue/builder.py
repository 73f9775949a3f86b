"""The catalogue: every EventType of a set of manifests, as a tool or with its refusal.

A declaration is a single EventType as a tool, without the tool's name, since other EventTypes may want it,
and without its route. An entry of a set of EventTypes has both, or the reason of a missing one.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from beckon_contract.catalogue.annotations import (
    TOOL_NAME,
    BrokenPlace,
    DecodedParameters,
    Options,
    find_parameters,
    find_returns,
    is_broker,
    read_options,
)
from beckon_contract.catalogue.diagnostics import Elsewhere, NearMisses
from beckon_contract.knative.delivery import Reference
from beckon_contract.knative.eventtypes import (
    EventType,
    InvalidEventType,
    is_event_type,
    parse_event_type,
    why_no_tool,
)
from beckon_contract.knative.routes import (
    DEFAULT_CALLER,
    Listener,
    RouteTable,
    call_attributes,
    choose_broker,
    is_trigger,
    read_trigger,
    route_table,
)
from beckon_contract.kubernetes_objects import Key, Resource, Unreadable
from beckon_contract.names import Identity, assign_names, rivals
from beckon_contract.resources.tools import Refusal, Skipped, Tool
from beckon_contract.schema.parameters import SchemaError, normalise, normalise_result


@dataclass(frozen=True, slots=True)
class Declared:
    """An EventType declared as a tool, with usable parameters, results and options."""

    event_type: EventType
    options: Options
    parameters: Mapping[str, Any]
    parameters_from: str
    returns: Mapping[str, Any] | None = None


def read_declaration(resource: Resource) -> Declared | Refusal | Skipped:
    """Return the declaration of an EventType, or its refusal.

    A `Refusal` says what is wrong with it, a `Skipped` why it is no tool.
    """
    try:
        event_type = parse_event_type(resource)
        why = why_no_tool(event_type)
        if why is not None:
            return Skipped(resource.name, resource.namespace, why[0], why[1], resource.origin)
        options = read_options(event_type)
        place, result = find_parameters(event_type), find_returns(event_type)
        parameters = _normalised(normalise, place)
        returns = None if result is None else _normalised(normalise_result, result)
        return Declared(event_type, options, parameters, place.place, returns)
    except InvalidEventType as error:
        first, *others = error.problems
        message = "; ".join([first.message, *map(str, others)])
        return Refusal(resource.name, resource.namespace, error.reason, first.path, message, resource.origin)
    except BrokenPlace as error:
        return Refusal(
            resource.name, resource.namespace, error.reason, error.place, error.message, resource.origin
        )


def _normalised(
    convert: Callable[[object], Mapping[str, Any]], decoded: DecodedParameters
) -> Mapping[str, Any]:
    try:
        return convert(decoded.document)
    except SchemaError as error:
        place = f"{decoded.place}#{error.path}" if error.path else decoded.place
        raise BrokenPlace(place, error.reason, error.message) from None


Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class Entry:
    """One EventType of a set.

    A declaration has a `tool`, with routes or with the reason in `unrouted` why it has none.
    `rivals` are the other EventTypes that want the same name, and so none of them has it.
    """

    resource: Resource
    declaration: Declared | Refusal | Skipped
    tool: Tool | None = None
    unrouted: Refusal | None = None
    rivals: tuple[Identity, ...] = ()


class Memory(Generic[Read]):
    """A cache of the values read from objects.

    A value is reused while its object stays the same.

    Objects are compared by content: Knative changes the spec of an EventType without raising
    its generation when it converts between versions.
    """

    def __init__(self, read: Callable[[Resource], Read]) -> None:
        self._read = read
        self._known: dict[Key, tuple[Resource, Read]] = {}

    def read(self, resources: Mapping[Key, Resource]) -> list[Read]:
        """Return the value of each object, in order; drop all others."""
        self._known = {key: self._entry(key, resource) for key, resource in resources.items()}
        return [read for _, read in self._known.values()]

    def _entry(self, key: Key, resource: Resource) -> tuple[Resource, Read]:
        known = self._known.get(key)
        if known is not None and known[0] == resource:
            return known
        return resource, self._read(resource)


class Router:
    """Finds the route of each tool's call among some Triggers. If there is none, it says why."""

    def __init__(
        self, table: RouteTable, caller: str = DEFAULT_CALLER, elsewhere: Elsewhere | None = None
    ) -> None:
        """Route by a table of Triggers. `elsewhere` is used by `NearMisses` for its explanations."""
        self.table = table
        self._caller = caller
        self._near_misses = NearMisses(table, elsewhere)

    def passing(self, event_type: EventType | Tool) -> list[Listener]:
        """Return the Triggers for the call, by name, ready or not."""
        attributes = call_attributes(event_type.type, event_type.source, self._caller)
        return self.table.passing(event_type.namespace, attributes)

    def route(self, name: str, declared: Declared) -> tuple[Tool, Refusal | None]:
        """Return the tool with its Triggers, or with a refusal.

        The refusal says why its call has no route. A tool that is called directly needs no Triggers.
        """
        event_type = declared.event_type
        reference = event_type.reference
        direct = declared.options.dispatch == "direct"
        called = reference if reference is not None and (direct or is_broker(reference)) else None
        named_broker = _stated_broker(event_type)
        if called is not None and called.namespace != event_type.namespace:
            elsewhere = _refusal(event_type, "OtherNamespace", "spec.reference.namespace", _elsewhere(called))
            return _tool(name, declared, choose_broker(named_broker, ()), ()), elsewhere
        if direct:
            return _tool(name, declared, choose_broker(event_type.broker, ()), ()), None
        passing = self.passing(event_type)
        ready = [listener for listener in passing if not listener.not_ready]
        broker = choose_broker(named_broker, ready or passing)
        routes = tuple(listener.trigger.name for listener in ready if listener.trigger.broker == broker)
        tool = _tool(name, declared, broker, routes)
        if routes:
            return tool, None
        attributes = call_attributes(event_type.type, event_type.source, self._caller)
        miss = self._near_misses.explain(event_type.namespace, broker, attributes)
        return tool, _refusal(event_type, miss.reason, "spec.type", miss.message)


class EntryReader:
    """Reads sets of EventTypes repeatedly, reusing unchanged entries."""

    def __init__(self) -> None:
        self._declarations = Memory(read_declaration)
        self._router: Router | None = None
        self._entries: dict[Key, Entry] = {}
        self._names: dict[Identity, str] = {}
        self._rivals: dict[Identity, tuple[Identity, ...]] = {}

    def read(
        self,
        event_types: Mapping[Key, Resource],
        router: Router,
        touched: Collection[str] | None = None,
    ) -> list[Entry]:
        """Return an entry for each of these EventTypes, in the order of their keys.

        Names are unique among them. A router is never changed: for other Triggers, pass another router. If
        all Triggers that differ from the last router's ask for certain types, `touched` names these types,
        and the routes of other types are reused.
        """
        ordered = dict(sorted(event_types.items()))
        declarations = dict(zip(ordered, self._declarations.read(ordered), strict=True))
        same_routes = router is self._router
        known, self._router, self._entries = self._entries, router, {}
        if len(known) != len(declarations) or any(
            key not in known or known[key].declaration is not declaration
            for key, declaration in declarations.items()
        ):
            self._assign_names(ordered, declarations)
        for key, declaration in declarations.items():
            identity = Identity(key.namespace, key.name)
            name, competing_for_it = self._names.get(identity, ""), self._rivals.get(identity, ())
            entry = known.get(key)
            if (
                entry is None
                or entry.declaration is not declaration
                or not (same_routes or _untouched(entry, touched))
                or (entry.tool is not None and entry.tool.name != name)
            ):
                entry = _entry(ordered[key], declaration, name, router)
            self._entries[key] = (
                entry if entry.rivals == competing_for_it else replace(entry, rivals=competing_for_it)
            )
        return list(self._entries.values())

    def _assign_names(
        self, event_types: Mapping[Key, Resource], declarations: Mapping[Key, Declared | Refusal | Skipped]
    ) -> None:
        wanted = {
            Identity(key.namespace, key.name): _wanted_name(event_types[key])
            for key, declaration in declarations.items()
            if not isinstance(declaration, Skipped)
        }
        self._names, self._rivals = assign_names(wanted), rivals(wanted)


def _untouched(entry: Entry, touched: Collection[str] | None) -> bool:
    """Return True if the route of an entry is unchanged.

    The reason for a missing route can depend on any Trigger.
    """
    if touched is None or entry.unrouted is not None:
        return False
    return entry.tool is None or entry.tool.type not in touched


def _entry(resource: Resource, declaration: Declared | Refusal | Skipped, name: str, router: Router) -> Entry:
    if not isinstance(declaration, Declared):
        return Entry(resource, declaration)
    tool, unrouted = router.route(name, declaration)
    return Entry(resource, declaration, tool, unrouted)


def by_key(resources: Iterable[Resource]) -> dict[Key, Resource]:
    """Return objects by their keys, in the order of keys; of two with one key the later counts."""
    return dict(sorted({resource.key: resource for resource in resources}.items()))


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
        destructive=options.destructive,
        reply=options.reply,
        reply_attribute=options.reply_attribute or "",
        broker=broker,
        routes=routes,
        reference=event_type.reference,
        labels=event_type.labels,
        origin=event_type.origin,
        returns=declared.returns,
    )


def _elsewhere(reference: Reference) -> str:
    # A call into another namespace would reach what the EventType's own has no say in.
    return (
        f"names {reference.kind} {reference.namespace}/{reference.name}; a tool is called in its own "
        f"namespace, so write the EventType in namespace {reference.namespace}"
    )


def _stated_broker(event_type: EventType) -> str | None:
    """Return the Broker named by an EventType, or `None`. `spec.broker` is the older form."""
    if event_type.broker is not None:
        return event_type.broker
    reference = event_type.reference
    return reference.name if reference is not None and is_broker(reference) else None


def _wanted_name(resource: Resource) -> str:
    return resource.annotations.get(TOOL_NAME, "").strip() or resource.name


def _refusal(event_type: EventType, reason: str, field_path: str, message: str) -> Refusal:
    return Refusal(event_type.name, event_type.namespace, reason, field_path, message, event_type.origin)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tools of a set of manifests, with refusals and skipped EventTypes.

    `tools` is by the name that a model sees, in the order of names. `refusals` is what was refused,
    `skipped` what is no tool. `table` holds the Triggers in which the routes were found.
    """

    tools: Mapping[str, Tool]
    refusals: tuple[Refusal, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    table: RouteTable = field(default_factory=RouteTable)


def build_catalogue(resources: Iterable[Resource | Unreadable], caller: str = DEFAULT_CALLER) -> Catalogue:
    """Return the catalogue of these manifests; of two objects with one key the later counts.

    `caller` is the CloudEvents source of the agent. Nothing in a manifest makes this raise.
    """
    return CatalogueBuilder(caller).build(resources)


class CatalogueBuilder:
    """Builds catalogues repeatedly, reading only changed objects anew."""

    def __init__(self, caller: str = DEFAULT_CALLER) -> None:
        self._caller = caller
        self._triggers = Memory(read_trigger)
        self._entries = EntryReader()

    def build(self, resources: Iterable[Resource | Unreadable]) -> Catalogue:
        """Return the catalogue of these manifests."""
        everything = list(resources)
        readable = [resource for resource in everything if isinstance(resource, Resource)]
        unreadable = [
            Refusal("", "", "Unreadable", "", resource.message, resource.origin)
            for resource in everything
            if isinstance(resource, Unreadable)
        ]
        # In the order of keys, so that messages name the same objects in any order of arrival.
        table = route_table(self._triggers.read(by_key(filter(is_trigger, readable))))
        event_types = by_key(filter(is_event_type, readable))
        return _catalogue(self._entries.read(event_types, Router(table, self._caller)), table, unreadable)


def _catalogue(entries: Iterable[Entry], table: RouteTable, refusals: list[Refusal]) -> Catalogue:
    tools: dict[str, Tool] = {}
    skipped: list[Skipped] = []
    for entry in entries:
        if isinstance(entry.declaration, Refusal):
            refusals.append(entry.declaration)
        elif isinstance(entry.declaration, Skipped):
            skipped.append(entry.declaration)
        elif entry.unrouted is not None:
            refusals.append(entry.unrouted)
        elif entry.tool is not None:
            tools[entry.tool.name] = entry.tool
    return Catalogue(
        MappingProxyType(dict(sorted(tools.items()))),
        tuple(sorted(refusals, key=_place)),
        tuple(sorted(skipped, key=_place)),
        table,
    )


def _place(refused: Refusal | Skipped) -> tuple[str, str, str, str]:
    return refused.namespace, refused.event_type, refused.origin, refused.message
