"""The readiness of Triggers in the absence of a controller.

A Trigger is ready if its subscriber has an address.
"""

from collections.abc import Iterable
from dataclasses import replace

from beckon_contract.addresses import AddressBook, Unaddressable
from beckon_contract.resources import Resource
from beckon_contract.triggers import InvalidResource, parse_trigger


def with_readiness(resources: Iterable[Resource]) -> list[Resource]:
    """Return the objects, with a condition on unready Triggers.

    A Trigger whose subscriber has no address gets a `Ready` condition that says so. In a cluster Knative's
    Trigger controller writes it; the reason is the same.
    """
    everything = list(resources)
    book = AddressBook(everything)
    return [_judged(resource, book) if resource.kind == "Trigger" else resource for resource in everything]


def _judged(resource: Resource, book: AddressBook) -> Resource:
    try:
        book.resolve(parse_trigger(resource).subscriber)
    except InvalidResource:
        return resource
    except Unaddressable as error:
        condition = {
            "type": "Ready",
            "status": "False",
            "reason": "Unable to get the Subscriber's URI",
            "message": str(error),
        }
        return replace(resource, status={**resource.status, "conditions": [condition]})
    return resource
