"""Manifests, and what becomes of them."""

import json
from collections.abc import Mapping
from typing import Any

from tests.cluster.kube import Kube, condition, until

SHIM = "http://beckon-shim-replies.beckon.svc.cluster.local"
PARAMETERS = '{"place": {"type": "string"}}'
APPLIED_BY_HAND = {"beckon.dev/parameters": PARAMETERS}

Document = dict[str, Any]


def thing(api_version: str, kind: str, name: str, spec: Document, **metadata: Any) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def event_type(name: str = "get.weather", spec: Document | None = None, **metadata: Any) -> Document:
    """Return an EventType with parameters in the annotation; its type is its name."""
    metadata.setdefault("annotations", APPLIED_BY_HAND)
    base = {"type": name, "description": "The weather."}
    return thing("eventing.knative.dev/v1beta2", "EventType", name, {**base, **(spec or {})}, **metadata)


def trigger(name: str = "weather", wants: str | None = "get.weather", **spec: Any) -> Document:
    """Return a Trigger of Broker default that leads to an address, which no one resolves."""
    base: Document = {"broker": "default", "subscriber": {"uri": "http://weather.example.svc"}}
    if wants:
        base["filter"] = {"attributes": {"type": wants}}
    return thing("eventing.knative.dev/v1", "Trigger", name, {**base, **spec})


def replies(**spec: Any) -> Document:
    """Return the Trigger that brings replies to the shim."""
    base = {"filter": {"attributes": {"replyid": ""}}, "subscriber": {"uri": f"{SHIM}/replies"}}
    return trigger("beckon-replies", None, **{**base, **spec})


def broker(name: str = "default", sink: str | None = f"{SHIM}/dead-letters", **metadata: Any) -> Document:
    """Return a Broker; its dead letters go to the shim."""
    spec = {"delivery": {"deadLetterSink": {"uri": sink}, "retry": 0}} if sink else {}
    return thing("eventing.knative.dev/v1", "Broker", name, spec, **metadata)


def knative_service(name: str = "weather") -> Document:
    """Return a Knative Service whose image is nowhere, so that it never becomes ready."""
    container = {"image": "dev.local/there-is-no-such-image:1"}
    return thing(
        "serving.knative.dev/v1", "Service", name, {"template": {"spec": {"containers": [container]}}}
    )


def to_service(name: str = "weather") -> Document:
    """Return a subscriber: a Knative Service."""
    return {"ref": {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": name}}


def apply(kube: Kube, *documents: Document, flags: tuple[str, ...] = ()) -> None:
    """Apply manifests at once."""
    kube.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)}), *flags)


def becomes_all(kube: Kube, reasons: Mapping[str, str], tool: str = "get.weather") -> Document:
    """Wait until the conditions of a Tool have these reasons, all at once, and return it.

    Who looks once for each may see two states: Knative takes back for a moment that a new Trigger is ready.
    """

    def look() -> Document:
        found = kube.find("tool", tool) or {}
        return found if all(condition(found, which)[1] == reason for which, reason in reasons.items()) else {}

    return until(look, what=f"{reasons} of Tool {tool}")


def becomes(kube: Kube, which: str, reason: str, tool: str = "get.weather", within: float = 30) -> str:
    """Wait until a condition of a Tool has this reason, and return its message."""
    seen: list[tuple[str, str, str]] = []

    def look() -> bool:
        seen[:] = [condition(kube.find("tool", tool), which)]
        return seen[0][1] == reason

    try:
        until(look, within=within, what=f"{which} {reason} of Tool {tool}")
    except AssertionError as error:
        raise AssertionError(f"{error}; it is {seen[0]}") from None
    return seen[0][2]
