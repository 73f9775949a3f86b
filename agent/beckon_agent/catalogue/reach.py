"""Which tools this agent has a way to call."""

from collections.abc import Iterable
from dataclasses import replace

from beckon_contract.addresses import AddressBook, Unaddressable
from beckon_contract.catalogue import Catalogue
from beckon_contract.delivery import Destination
from beckon_contract.options import DISPATCH
from beckon_contract.resources import Resource
from beckon_contract.tools import Refusal, Tool


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
