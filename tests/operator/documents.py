"""Objects as the API server sends them, written as short as they can be."""

import itertools
from typing import Any

from beckon_operator.conditions.namespace_view import JudgingRules

NAMESPACE = "team"
SHIM = "http://beckon-shim-replies.beckon.svc.cluster.local"
RULES = JudgingRules(SHIM)
KSERVICE = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "weather"}
PARAMETERS = '{"place": {"type": "string"}}'

_versions = itertools.count(1)

Document = dict[str, Any]


def ready(status: str = "True", reason: str = "", message: str = "") -> Document:
    """Return a status with the condition Ready."""
    return {"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": message}]}


def thing(
    api_version: str,
    kind: str,
    name: str,
    spec: Document | None = None,
    status: Document | None = None,
    **metadata: Any,
) -> Document:
    """Return any object, in a version later than all before it."""
    version = str(next(_versions))
    identity = {"namespace": NAMESPACE, "name": name, "uid": f"uid-{kind}-{name}", "generation": 1}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {**identity, "resourceVersion": version, **metadata},
        "spec": spec or {},
        "status": status or {},
    }


def event_type(name: str = "get.weather", spec: Document | None = None, **metadata: Any) -> Document:
    """Return an EventType with parameters in the annotation, whose type is its name; `spec` adds to that."""
    base = {"type": name, "description": "The weather."}
    metadata.setdefault("annotations", {"beckon.dev/parameters": PARAMETERS})
    return thing("eventing.knative.dev/v1beta2", "EventType", name, {**base, **(spec or {})}, **metadata)


def trigger(
    name: str = "weather",
    wants: str | None = "get.weather",
    spec: Document | None = None,
    status: Document | None = None,
    **metadata: Any,
) -> Document:
    """Return a ready Trigger of the default Broker that leads to a plain address."""
    base: Document = {"broker": "default", "subscriber": {"uri": "http://weather.team.svc"}}
    if wants is not None:
        base["filter"] = {"attributes": {"type": wants}}
    found = ready() if status is None else status
    return thing("eventing.knative.dev/v1", "Trigger", name, {**base, **(spec or {})}, found, **metadata)


def reply_trigger(spec: Document | None = None, status: Document | None = None, **metadata: Any) -> Document:
    """Return the ready Trigger that brings replies to the shim."""
    base = {"filter": {"attributes": {"replyid": ""}}, "subscriber": {"uri": f"{SHIM}/replies"}}
    return trigger("beckon-replies", None, {**base, **(spec or {})}, status, **metadata)


def broker(
    name: str = "default", spec: Document | None = None, status: Document | None = None, **metadata: Any
) -> Document:
    """Return a ready Broker whose dead letters go to the shim."""
    base = {"delivery": {"deadLetterSink": {"uri": f"{SHIM}/dead-letters"}}}
    found = ready() if status is None else status
    return thing("eventing.knative.dev/v1", "Broker", name, base if spec is None else spec, found, **metadata)


def service(name: str = "weather", status: Document | None = None) -> Document:
    """Return a Knative Service that has a ready revision."""
    address = {"address": {"url": f"http://{name}.team.svc.cluster.local"}}
    base = {"latestReadyRevisionName": f"{name}-00001", **address, **ready()}
    return thing("serving.knative.dev/v1", "Service", name, {}, base if status is None else status)


def manager(operation: str, *fields: str, version: str = "v1beta2", **more: Any) -> Document:
    """Return an entry of managedFields for fields of the spec."""
    spec: Document = {f"f:{field}": {} for field in fields}
    api_version = f"eventing.knative.dev/{version}"
    return {"operation": operation, "apiVersion": api_version, "fieldsV1": {"f:spec": spec}, **more}
