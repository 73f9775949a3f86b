"""`Tool` resources: written by the operator, read by agents.

The operator writes one for an EventType.

A Tool is one object without a status subresource: its declaration and its conditions are
written together, so an agent never sees conditions that speak of another declaration.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from beckon_contract.knative.delivery import Reference
from beckon_contract.kubernetes_objects import READY, Condition, Resource, condition
from beckon_contract.resources.tools import Dispatch, Refusal, Tool

GROUP = "beckon.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "Tool"
PLURAL = "tools"

# In the order in which they are judged; Ready is made of the first three.
CONDITIONS = ("Declared", "Routed", "Answerable", "Available", "DeadLettered", READY)
# Written by the agents, who know how calls end, into the list of the operator, who leaves it there.
ANSWERING = "Answering"
_DECIDING = frozenset(CONDITIONS[:3])
_WARNING = frozenset(("Available", "DeadLettered"))


def tool_spec(tool: Tool) -> dict[str, Any]:
    """Return the spec of a Tool resource.

    Optional fields are left out if they are absent or at their default.
    """
    spec: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "parametersFrom": tool.parameters_from,
        "type": tool.type,
        "dispatch": tool.dispatch,
        "broker": tool.broker,
        "triggers": list(tool.routes),
    }
    optional: dict[str, Any] = {
        "source": tool.source,
        "timeoutSeconds": tool.timeout,
        "requiresApproval": tool.requires_approval,
        "idempotent": tool.idempotent,
        "readOnly": tool.read_only,
        "address": tool.address,
        "reference": _reference(tool.reference),
    }
    if tool.destructive is not None:  # where nothing is said, false is no guess to make
        spec["destructive"] = tool.destructive
    return spec | {name: value for name, value in optional.items() if value}


def read_tool(resource: Resource) -> Tool | Refusal:
    """Return the tool offered by a resource, or its refusal.

    The refusal is made of the Ready condition. Nothing in a resource makes this raise; one that no operator
    can have written is refused.
    """
    ready = condition(resource.status, READY)
    if ready is None or ready.status != "True":
        return _refusal(resource, ready)
    spec = resource.spec
    try:
        return Tool(
            name=_text(spec, "name"),
            namespace=resource.namespace,
            event_type=resource.name,
            type=_text(spec, "type"),
            source=_optional(spec, "source") or None,
            description=_optional(spec, "description"),
            parameters=_mapping(spec, "parameters"),
            parameters_from=_optional(spec, "parametersFrom"),
            timeout=_seconds(spec.get("timeoutSeconds")),
            requires_approval=spec.get("requiresApproval") is True,
            dispatch=_dispatch(spec.get("dispatch")),
            idempotent=spec.get("idempotent") is True,
            read_only=spec.get("readOnly") is True,
            destructive=_said(spec.get("destructive")),
            broker=_optional(spec, "broker") or "default",
            routes=_texts(spec, "triggers"),
            reference=_read_reference(spec.get("reference"), resource.namespace),
            address=_optional(spec, "address"),
            labels=resource.labels,
            origin=resource.origin,
        )
    except ValueError as error:
        message = f"{error}; the operator writes Tools, so change the EventType instead"
        return Refusal(resource.name, resource.namespace, "InvalidTool", "spec", message, resource.origin)


def ready_from(conditions: Iterable[Condition]) -> Condition:
    """Return the Ready condition, made of the first three conditions.

    The first of them that is not True decides. Where all are, Ready is True, and a condition that
    only warns gives it its reason: `kubectl get tools` shows no other.
    """
    found = list(conditions)
    for one in found:
        if one.type in _DECIDING and one.status != "True":
            return Condition(READY, one.status, one.reason, one.message)
    for one in found:
        if one.type in _WARNING and one.status == "False":
            return Condition(READY, "True", one.reason, one.message)
    return Condition(READY, "True", "Ready")


def _refusal(resource: Resource, ready: Condition | None) -> Refusal:
    reason = ready.reason if ready and ready.reason else "NotJudged"
    message = ready.message if ready and ready.message else "the operator has not judged this Tool yet"
    return Refusal(resource.name, resource.namespace, reason, "", message, resource.origin)


def _reference(reference: Reference | None) -> dict[str, str] | None:
    if reference is None:
        return None
    return {
        "apiVersion": reference.api_version,
        "kind": reference.kind,
        "namespace": reference.namespace,
        "name": reference.name,
    }


def _read_reference(value: object, namespace: str) -> Reference | None:
    if not isinstance(value, Mapping):
        return None
    return Reference(
        _text(value, "apiVersion"),
        _text(value, "kind"),
        _optional(value, "namespace") or namespace,
        _text(value, "name"),
    )


def _text(values: Mapping[str, Any], name: str, *, empty: bool = False) -> str:
    value = values.get(name)
    if not isinstance(value, str) or not (value or empty):
        raise ValueError(f"{name} is missing or no string")
    return value


def _optional(values: Mapping[str, Any], name: str) -> str:
    return "" if values.get(name) is None else _text(values, name, empty=True)


def _texts(values: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = values.get(name) or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ValueError(f"{name} is no list of strings")
    return tuple(value)


def _mapping(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = values.get(name)
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} is missing or no mapping")
    return value


def _seconds(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise ValueError(f"timeoutSeconds is {value!r}, not a number of seconds")
    return float(value)


def _dispatch(value: object) -> Dispatch:
    if value == "direct":
        return "direct"
    if value == "broker":
        return "broker"
    raise ValueError(f"dispatch is {value!r}, neither broker nor direct")


def _said(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
