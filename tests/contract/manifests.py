"""Resources for tests, written as short as they can be."""

import json
from typing import Any

from beckon_contract.kubernetes_objects import Resource

EVENTING = "eventing.knative.dev"
SERVICE = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "weather"}
BROKER = {"apiVersion": f"{EVENTING}/v1", "kind": "Broker", "name": "default"}


def event_type(
    name: str = "get.weather",
    *,
    namespace: str = "default",
    version: str = "v1beta2",
    spec: dict[str, Any] | None = None,
    **metadata: Any,
) -> Resource:
    """Return an EventType with a description, whose type is its name; `spec` adds to that."""
    base: dict[str, Any] = {"description": "The weather."}
    if version != "v1beta3":
        base["type"] = name
    api_version = f"{EVENTING}/{version}"
    return Resource(api_version, "EventType", namespace, name, {**base, **(spec or {})}, **metadata)


def trigger(
    name: str = "weather",
    wants: str | None = "get.weather",
    *,
    namespace: str = "default",
    spec: dict[str, Any] | None = None,
    **metadata: Any,
) -> Resource:
    """Return a Trigger of the default Broker that wants a type, or everything; `spec` adds to that."""
    base: dict[str, Any] = {"broker": "default", "subscriber": {"ref": SERVICE}}
    if wants is not None:
        base["filter"] = {"attributes": {"type": wants}}
    return Resource(f"{EVENTING}/v1", "Trigger", namespace, name, {**base, **(spec or {})}, **metadata)


def parameters(*names: str) -> str:
    """Return a bare properties map as JSON text."""
    return json.dumps({name: {"type": "string"} for name in names})
