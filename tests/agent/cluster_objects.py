"""Tools and Agents as an API server holds them."""

from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]


def tool(name: str, /, namespace: str = "default", ready: str = "True", **more: Any) -> Document:
    """Return a Tool as the operator writes it; `more` are fields of its spec, or `labels`."""
    labels: Mapping[str, str] = more.pop("labels", {})
    shown = name.replace(".", "_").replace("-", "_")
    spec = {
        "name": shown,
        "description": f"The tool {name}.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
        "parametersFrom": "spec.schemaData",
        "type": name,
        "dispatch": "broker",
        "broker": "default",
        "triggers": [name],
        **more,
    }
    reason, message = ("Ready", "") if ready == "True" else ("NoTrigger", "no Trigger passes it")
    condition = {"type": "Ready", "status": ready, "reason": reason, "message": message}
    return {
        "apiVersion": "beckon.dev/v1alpha1",
        "kind": "Tool",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": spec,
        "status": {"conditions": [condition]},
    }


def event_type(name: str, /, namespace: str = "default", **spec: Any) -> Document:
    """Return an EventType that is no tool; the type is the name."""
    metadata = {"name": name, "namespace": namespace, "labels": {"beckon.dev/tool": "false"}}
    spec = {"type": name, **spec}
    return {
        "apiVersion": "eventing.knative.dev/v1beta2",
        "kind": "EventType",
        "metadata": metadata,
        "spec": spec,
    }


def agent(name: str, namespace: str = "default", **spec: Any) -> Document:
    """Return an Agent."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "beckon.dev/v1alpha1", "kind": "Agent", "metadata": metadata, "spec": spec}
