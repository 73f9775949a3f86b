"""The declaration of a single EventType as a tool.

The tool's name is left out, since other EventTypes may want it, and so is its route.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from beckon_contract.eventtypes import EventType, InvalidEventType, parse_event_type, why_no_tool
from beckon_contract.options import Options, read_options
from beckon_contract.parameters import SchemaError, normalise
from beckon_contract.places import BrokenPlace, find_parameters
from beckon_contract.resources import Resource
from beckon_contract.tools import Refusal, Skipped


@dataclass(frozen=True, slots=True)
class Declared:
    """An EventType declared as a tool, with usable parameters and options."""

    event_type: EventType
    options: Options
    parameters: Mapping[str, Any]
    parameters_from: str


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
