"""The source of a run's tools, and the tools that this agent can reach."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Protocol

from beckon_agent.tools.explain import Explanation
from beckon_contract.addresses import AddressBook, Unaddressable
from beckon_contract.catalogue import Catalogue
from beckon_contract.delivery import Destination
from beckon_contract.options import DISPATCH
from beckon_contract.resources import Resource
from beckon_contract.tools import Refusal, Tool


class CatalogueSource(Protocol):
    """Something that keeps a catalogue up to date."""

    @property
    def current(self) -> Catalogue:
        """The catalogue as it is now; never blocks, never raises, and is never changed afterwards."""
        ...

    def explain(self, namespace: str, event_type: str) -> Explanation | None:
        """Return what is known of an EventType, `None` for one that there is not; never blocks or raises."""
        ...


def reachable(catalogue: Catalogue, resources: Iterable[Resource]) -> Catalogue:
    """Give tools that are called directly the address of what `spec.reference` names.

    Those that have none are refused, so that no model is offered one; in a cluster the operator
    does both.
    """
    if all(tool.dispatch != "direct" for tool in catalogue.tools.values()):
        return catalogue
    book = AddressBook(resources)
    tools: dict[str, Tool] = {}
    refusals: list[Refusal] = []
    for name, tool in catalogue.tools.items():
        found = _addressed(tool, book)
        if isinstance(found, Tool):
            tools[name] = found
        else:
            refusals.append(found)
    return replace(catalogue, tools=tools, refusals=(*catalogue.refusals, *refusals))


def _addressed(tool: Tool, book: AddressBook) -> Tool | Refusal:
    if tool.dispatch != "direct" or tool.address:
        return tool
    try:
        return replace(tool, address=book.resolve(Destination(tool.reference)))
    except Unaddressable as error:
        message = f"{error}; the annotation {DISPATCH} sends calls straight to it"
        return Refusal(
            tool.event_type, tool.namespace, "AddressUnknown", "spec.reference", message, tool.origin
        )
