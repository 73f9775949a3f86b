"""AdmissionReviews as the API server sends them, and EventTypes to put into them."""

import json
from typing import Any

TEXT = '{"city": {"type": "string"}}'
COPY = "beckon.dev/schema-data"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def event_type(
    schema_data: str | None = None,
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    version: str = "v1beta2",
    **spec: Any,
) -> dict[str, Any]:
    """Return an EventType as it is sent to a webhook; `None` leaves a field out."""
    metadata: dict[str, Any] = {"name": "get.weather", "namespace": "team-a"}
    if annotations is not None:
        metadata["annotations"] = annotations
    if labels is not None:
        metadata["labels"] = labels
    full: dict[str, Any] = {"type": "get.weather", "description": "Get the weather.", **spec}
    if schema_data is not None:
        full["schemaData"] = schema_data
    return {
        "apiVersion": f"eventing.knative.dev/{version}",
        "kind": "EventType",
        "metadata": metadata,
        "spec": {name: value for name, value in full.items() if value is not None},
    }


def applied(schema_data: str | None, **annotations: str) -> str:
    """Return the manifest that `kubectl apply` leaves on an EventType."""
    return json.dumps(event_type(schema_data, annotations))


def request(new: dict[str, Any] | None, old: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return an AdmissionReview of an EventType that is created, or updated where `old` is given."""
    version = new["apiVersion"].rpartition("/")[2] if new else "v1beta2"
    sent = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "eventing.knative.dev", "version": version, "kind": "EventType"},
        "resource": {"group": "eventing.knative.dev", "version": version, "resource": "eventtypes"},
        "name": "get.weather",
        "namespace": "team-a",
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {"username": "ada", "groups": ["system:authenticated"]},
        "object": new,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        **changes,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": sent}
