"""The condition Declared: an EventType is complete enough for a tool.

The message names the place of its parameters, and the risk of losing them.
"""

from beckon_contract.catalogue.annotations import (
    LAST_APPLIED,
    NOWHERE,
    PARAMETERS,
    SCHEMA_DATA,
    BrokenPlace,
    decode,
    last_applied,
)
from beckon_contract.catalogue.builder import Declared, Entry
from beckon_contract.knative.eventtypes import EventType
from beckon_contract.kubernetes_objects import Condition
from beckon_contract.resources.tools import Refusal
from beckon_operator.objects import History

DECLARED = "Declared"

_PRESERVED = f"metadata.annotations[{SCHEMA_DATA}]"
_CURE = f"write the JSON Schema in annotation {PARAMETERS} of the EventType, where nothing loses it"


def judge_declared(entry: Entry, history: History, *, remembered: bool) -> Condition:
    """Return the condition; `remembered` parameters are no longer on the EventType."""
    declaration = entry.declaration
    if isinstance(declaration, Refusal):
        return Condition(
            DECLARED,
            "False",
            declaration.reason,
            f"EventType {declaration.event_type}, {_refusal_text(declaration)}",
        )
    if not isinstance(declaration, Declared):
        return Condition(DECLARED, "False", declaration.reason, declaration.message)
    if declaration.parameters_from == NOWHERE:
        return _without_parameters(declaration.event_type, history)
    doubt = _find_doubt(declaration, history, remembered=remembered)
    if doubt:
        return Condition(DECLARED, "True", "ParametersMayBeStale", f"{doubt}; {_CURE}")
    message = f"parameters from {declaration.parameters_from}"
    if entry.rivals and entry.tool is not None:
        others = ", ".join(str(rival.name) for rival in entry.rivals[:3])
        message = (
            f"{message}; EventTypes {others} want the same name, so this one is called {entry.tool.name}: "
            "set annotation beckon.dev/tool-name to a name of its own"
        )
        return Condition(DECLARED, "True", "NameCollision", message)
    return Condition(DECLARED, "True", DECLARED, message)


def _without_parameters(event_type: EventType, history: History) -> Condition:
    # With a last-applied manifest that holds no schema, none was meant to be there.
    if history.schema_data and not event_type.annotations.get(LAST_APPLIED):
        message = (
            "spec.schemaData was written, and Knative has erased it (1.15 and later do); "
            f"{_CURE}; for a tool without parameters write {{}} there"
        )
        return Condition(DECLARED, "False", "ParametersLost", message)
    message = f"a tool without parameters, for none are written; to give it some, {_CURE}"
    return Condition(DECLARED, "True", "NoParameters", message)


def _find_doubt(declared: Declared, history: History, *, remembered: bool) -> str:
    """Return the reason to doubt the parameters, "" for none.

    A doubt means that they may differ from those of the manifest.
    """
    place, event_type = declared.parameters_from, declared.event_type
    if remembered:
        return "parameters from spec.schemaData, which Knative has erased since"
    if place == _PRESERVED:
        newer = _newer_text(event_type)
        if newer is not None and not _same_json(newer, event_type.annotations[SCHEMA_DATA]):
            return f"parameters from {place}, and the manifest that was applied last says something else"
    if history.applied and (place == _PRESERVED or place.endswith("spec.schemaData")):
        return (
            f"parameters from {place}, and the EventType is written by server-side apply, under which "
            "Knative hides later changes of spec.schemaData"
        )
    return ""


def _newer_text(event_type: EventType) -> str | None:
    """Return the newest schemaData of the object or its last-applied manifest. `None` means unknown."""
    if event_type.schema_data is not None:
        return event_type.schema_data
    try:
        applied = last_applied(event_type)
    except BrokenPlace:
        return None
    if applied is None:
        return None
    return applied.annotations.get(SCHEMA_DATA) or applied.schema_data or ""


def _same_json(one: str, other: str) -> bool:
    try:
        return bool(decode(one, "") == decode(other, ""))
    except BrokenPlace:
        return one.strip() == other.strip()


def _refusal_text(refusal: Refusal) -> str:
    return f"{refusal.field}: {refusal.message}" if refusal.field else refusal.message
