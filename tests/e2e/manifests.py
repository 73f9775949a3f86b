"""Manifests for the end-to-end tests."""

import json
from collections.abc import Mapping
from typing import Any

import yaml


def tool_manifests(
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    *,
    command: str = "",
    url: str = "",
    annotations: Mapping[str, str] | None = None,
    delivery: Mapping[str, Any] | None = None,
) -> str:
    """Return an EventType, its Trigger and its Service as YAML; the type is the name with dots."""
    event_type = name.replace("-", ".")
    reference = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": name}
    local = {"beckon.dev/local-command": command} if command else {"beckon.dev/local-url": url}
    trigger: dict[str, Any] = {
        "broker": "default",
        "filter": {"attributes": {"type": event_type}},
        "subscriber": {"ref": reference},
    }
    if delivery is not None:
        trigger["delivery"] = dict(delivery)
    documents = [
        {
            "apiVersion": "eventing.knative.dev/v1beta2",
            "kind": "EventType",
            "metadata": {
                "name": event_type,
                "annotations": {"beckon.dev/parameters": json.dumps(parameters), **(annotations or {})},
            },
            "spec": {"type": event_type, "description": description, "reference": reference},
        },
        {
            "apiVersion": "eventing.knative.dev/v1",
            "kind": "Trigger",
            "metadata": {"name": name},
            "spec": trigger,
        },
        {
            "apiVersion": "serving.knative.dev/v1",
            "kind": "Service",
            "metadata": {"name": name, "annotations": local if command or url else {}},
            "spec": {"template": {"spec": {"containers": [{"image": "example.com/not-used-here"}]}}},
        },
    ]
    return yaml.safe_dump_all(documents, sort_keys=False)
