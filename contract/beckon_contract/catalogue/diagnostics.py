"""Diagnostics: errors and likely mistakes in manifests, and tool calls without a route."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple

from beckon_contract.cloudevents.events import AttributeValue
from beckon_contract.fields import FieldProblem
from beckon_contract.knative.filters import compile_filter
from beckon_contract.knative.routes import Attributes, BrokenTrigger, Listener, RouteTable, wanted_type
from beckon_contract.kubernetes_objects import Resource

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """An error or a warning about an object.

    An `error` keeps the object from its work, a `warning` is a likely surprise later.

    `field` is the path of the field to change, `message` says what is wrong and what to write.
    A document that cannot be read has no kind and no name.
    """

    origin: str
    namespace: str
    kind: str
    name: str
    severity: Severity
    field: str
    message: str


def warning(resource: Resource, field: str, message: str) -> Finding:
    """Return a warning about a field of an object."""
    return _finding(resource, "warning", field, message)


def error(resource: Resource, field: str, message: str) -> Finding:
    """Return an error in a field of an object."""
    return _finding(resource, "error", field, message)


def warnings(resource: Resource, problems: tuple[FieldProblem, ...]) -> list[Finding]:
    """Return a parser's warnings about an object as findings."""
    return [warning(resource, problem.path, problem.message) for problem in problems]


def errors(resource: Resource, problems: tuple[FieldProblem, ...]) -> list[Finding]:
    """Return a parser's errors in an object as findings."""
    return [error(resource, problem.path, problem.message) for problem in problems]


def _finding(resource: Resource, severity: Severity, field: str, message: str) -> Finding:
    return Finding(
        resource.origin, resource.namespace, resource.kind, resource.name, severity, field, message
    )


Elsewhere = Callable[[str], Iterable[Listener]]

_NEIGHBOURS = 5  # compared on each side; a whole catalogue with typing mistakes stays cheap
_ALIKE = 0.8
_COMPARED = 128  # characters; comparing costs their square


class NoRoute(NamedTuple):
    """The reason for a call without a route.

    `reason` is one word for a condition, `message` says what to write.
    """

    reason: str
    message: str


class NearMisses:
    """Explains missing routes, reading the table only once."""

    def __init__(self, table: RouteTable, elsewhere: Elsewhere | None = None) -> None:
        """Explain by a table of Triggers.

        `elsewhere` finds the Triggers of all namespaces that ask for a type.
        """
        self._table = table
        self._elsewhere = elsewhere or self._asking_for

    def explain(self, namespace: str, broker: str, attributes: Attributes) -> NoRoute:
        """Return the nearest miss for a call on a Broker, with advice."""
        event_type = str(attributes["type"])
        finders = (
            self._passing(namespace, broker, attributes),
            self._broken(namespace, event_type),
            self._differing(namespace, event_type, attributes),
            self._in_other_namespaces(namespace, attributes),
            self._misspelt(namespace, event_type),
        )
        reason, miss = next((problem for finder in finders for problem in finder), NoRoute("NoTrigger", ""))
        if not miss and (namespace, broker) not in self._brokers_with_triggers:
            miss = f"namespace {namespace!r} has no Trigger on Broker {broker!r}"
        message = f"no Trigger brings events of type {event_type!r} from Broker {broker!r} to a service"
        message += f": {miss}" if miss else ""
        if reason != "TriggerNotReady":
            message += (
                f"; write a Trigger with spec.broker: {broker}, spec.filter.attributes: "
                f"{{type: {event_type}}} and the service as spec.subscriber"
            )
        return NoRoute(reason, message)

    def _passing(self, namespace: str, broker: str, attributes: Attributes) -> Iterator[NoRoute]:
        """Yield Triggers for the call, unready or of another Broker."""
        for listener in self._table.passing(namespace, attributes):
            name, other = listener.trigger.name, listener.trigger.broker
            if other == broker:
                text = f"Trigger {name!r} passes it and is not ready ({listener.not_ready})"
                yield NoRoute("TriggerNotReady", text)
            elif not listener.catches_all:
                yield NoRoute("OtherBroker", f"Trigger {name!r} passes it and listens to Broker {other!r}")

    def _broken(self, namespace: str, event_type: str) -> Iterator[NoRoute]:
        for broken in self._broken_by_type.get((namespace, event_type), ()):
            text = f"Trigger {broken.resource.name!r} has mistakes ({broken.problems[0]})"
            yield NoRoute("InvalidTrigger", text)

    def _differing(self, namespace: str, event_type: str, attributes: Attributes) -> Iterator[NoRoute]:
        for listener in self._table.by_type.get((namespace, event_type), ()):
            differences = "; ".join(_differences(listener, attributes))
            if differences:
                name = listener.trigger.name
                text = f"Trigger {name!r} asks for this type and does not pass it: {differences}"
                yield NoRoute("FilterMismatch", text)

    def _in_other_namespaces(self, namespace: str, attributes: Attributes) -> Iterator[NoRoute]:
        for listener in self._elsewhere(str(attributes["type"])):
            trigger = listener.trigger
            if trigger.namespace != namespace and trigger.filter(attributes):
                text = (
                    f"Trigger {trigger.name!r} in namespace {trigger.namespace!r} asks for it, "
                    "but a Trigger gets events of Brokers in its own namespace only"
                )
                yield NoRoute("OtherNamespace", text)

    def _asking_for(self, event_type: str) -> Iterable[Listener]:
        return self._by_type_alone.get(event_type, ())

    def _misspelt(self, namespace: str, event_type: str) -> Iterator[NoRoute]:
        if len(event_type) > _COMPARED:
            return
        near = get_close_matches(event_type, self._neighbours(namespace, event_type), n=1, cutoff=_ALIKE)
        for wanted in near:
            trigger = self._table.by_type[(namespace, wanted)][0].trigger
            text = (
                f"Trigger {trigger.name!r} comes nearest: attribute type: its filter wants {wanted!r}, "
                f"the call has {event_type!r}"
            )
            yield NoRoute("FilterMismatch", text)

    def _neighbours(self, namespace: str, event_type: str) -> list[str]:
        """Return types with a similar beginning or end. The mistake may be anywhere in the other half."""
        forward, backward = self._sorted_types.get(namespace, ([], []))
        reverse = event_type[::-1]
        return [*_neighbours(forward, event_type), *(text[::-1] for text in _neighbours(backward, reverse))]

    @cached_property
    def _brokers_with_triggers(self) -> set[tuple[str, str]]:
        """The Brokers of all Triggers, by namespace and name."""
        listeners = chain(*self._table.by_type.values(), *self._table.untyped.values())
        return {(listener.trigger.namespace, listener.trigger.broker) for listener in listeners}

    @cached_property
    def _broken_by_type(self) -> Mapping[tuple[str, str | None], list[BrokenTrigger]]:
        by_type: dict[tuple[str, str | None], list[BrokenTrigger]] = {}
        for broken in self._table.broken:
            key = broken.resource.namespace, wanted_type(broken.resource.spec)
            by_type.setdefault(key, []).append(broken)
        return by_type

    @cached_property
    def _by_type_alone(self) -> Mapping[str, list[Listener]]:
        by_type: dict[str, list[Listener]] = {}
        for (_, event_type), listeners in sorted(self._table.by_type.items()):
            by_type.setdefault(event_type, []).extend(listeners)
        return by_type

    @cached_property
    def _sorted_types(self) -> Mapping[str, tuple[list[str], list[str]]]:
        """The types wanted in every namespace, sorted from front and from end."""
        types: dict[str, list[str]] = {}
        for namespace, event_type in self._table.by_type:
            types.setdefault(namespace, []).append(event_type)
        return {
            namespace: (sorted(names), sorted(text[::-1] for text in names))
            for namespace, names in types.items()
        }


def _neighbours(ordered: list[str], text: str) -> list[str]:
    place = bisect_left(ordered, text)
    return ordered[max(0, place - _NEIGHBOURS) : place + _NEIGHBOURS]


def _differences(listener: Listener, attributes: Attributes) -> Iterator[str]:
    """Yield the differences between a Trigger's filter and the event."""
    spec = listener.resource.spec
    elements = spec.get("filters")
    if not elements:
        yield from _differing_attributes(spec["filter"]["attributes"], attributes)
        return
    for index, element in enumerate(elements):
        if compile_filter({"filters": [element]})(attributes):
            continue
        if isinstance(element.get("exact"), Mapping):
            yield from _differing_attributes(element["exact"], attributes)
        else:
            yield f"spec.filters[{index}] does not pass"


def _differing_attributes(wanted: Mapping[str, str], attributes: Attributes) -> Iterator[str]:
    for name, want in wanted.items():
        if not compile_filter({"filter": {"attributes": {name: want}}})(attributes):
            wish = repr(want) if want else "any value"
            yield f"attribute {name}: the filter wants {wish}, the call has {_shown(attributes.get(name))}"


def _shown(value: AttributeValue | None) -> str:
    return "none" if value is None else repr(value)
