"""The catalogue: every EventType of a set of manifests, as a tool or with the reason why not."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from beckon_contract.entries import Entry, EntryReader, Memory, Router, by_key
from beckon_contract.eventtypes import is_event_type
from beckon_contract.resources import Resource, Unreadable
from beckon_contract.routes import DEFAULT_CALLER, RouteTable, is_trigger, read_trigger, route_table
from beckon_contract.tools import Refusal, Skipped, Tool


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
        readable = [found for found in everything if isinstance(found, Resource)]
        unreadable = [
            Refusal("", "", "Unreadable", "", found.message, found.origin)
            for found in everything
            if isinstance(found, Unreadable)
        ]
        # In the order of keys, so that messages name the same objects in any order of arrival.
        table = route_table(self._triggers.read(by_key(filter(is_trigger, readable))))
        event_types = by_key(filter(is_event_type, readable))
        return _catalogue(self._entries.read(event_types, Router(table, self._caller)), table, unreadable)


def _catalogue(entries: Iterable[Entry], table: RouteTable, refusals: list[Refusal]) -> Catalogue:
    tools: dict[str, Tool] = {}
    skipped: list[Skipped] = []
    for entry in entries:
        if isinstance(entry.found, Refusal):
            refusals.append(entry.found)
        elif isinstance(entry.found, Skipped):
            skipped.append(entry.found)
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


def _place(found: Refusal | Skipped) -> tuple[str, str, str, str]:
    return found.namespace, found.event_type, found.origin, found.message
