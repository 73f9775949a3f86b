"""The source of a run's tools, and the tools reachable by this agent."""

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
    """A source of an up-to-date catalogue."""

    @property
    def current(self) -> Catalogue:
        """The current catalogue; never blocks or raises.

        The returned catalogue is never changed afterwards.
        """
        ...

    def explain(self, namespace: str, event_type: str) -> Explanation | None:
        """Return the explanation of an EventType, `None` for an unknown one.

        Never blocks or raises.
        """
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
        found = _with_address(tool, book)
        if isinstance(found, Tool):
            tools[name] = found
        else:
            refusals.append(found)
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
