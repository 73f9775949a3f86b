"""EventPolicies that apply to a Broker: they limit who may send events, which this class cannot check.

knative/eventing pkg/auth/event_policy.go: a policy without `spec.to` applies to everything in its namespace,
and an entry of `to` names one object (`ref`), or objects of a kind by their labels (`selector`).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from beckon_contract.kubernetes_objects import Resource
from beckon_sources.api_types import Document, Name, name_of

API_VERSION = "eventing.knative.dev/v1alpha1"
PLURAL = "eventpolicies"


class EventPolicies:
    """The EventPolicies of the watched namespaces; a sink of a reflector."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """Take a function to call after each change."""
        self._policies: dict[Name, Document] = {}
        self._changed = changed

    def put(self, document: Document) -> None:
        """Take a policy."""
        self._policies[name_of(document)] = document.get("spec") or {}
        self._changed()

    def drop(self, namespace: str, name: str) -> None:
        """Forget a deleted policy."""
        self._policies.pop((namespace, name), None)
        self._changed()

    def applying_to(self, broker: Resource) -> list[str]:
        """Return the names of the policies that apply to a Broker."""
        return sorted(
            name
            for (namespace, name), spec in self._policies.items()
            if namespace == broker.namespace and applies_to(spec, broker)
        )


def applies_to(spec: Document, broker: Resource) -> bool:
    """Return True if the policy with this spec applies to a Broker of its namespace."""
    targets = spec.get("to")
    if not isinstance(targets, list) or not targets:
        return True
    return any(_names(target, broker) for target in targets if isinstance(target, Mapping))


def _names(target: Mapping[str, Any], broker: Resource) -> bool:
    ref, selector = target.get("ref"), target.get("selector")
    if isinstance(ref, Mapping):
        return _is_kind(ref, broker) and ref.get("name") == broker.name
    if isinstance(selector, Mapping):
        return _is_kind(selector, broker) and _selects(selector, broker.labels)
    return False


def _is_kind(named: Mapping[str, Any], broker: Resource) -> bool:
    """Return True if a target is of the Broker's kind, in any version of its group."""
    group = str(named.get("apiVersion") or "").partition("/")[0]
    return group == broker.group and named.get("kind") == broker.kind


def _selects(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return True if a label selector matches, as Kubernetes evaluates it (LabelSelector of meta/v1)."""
    wanted = selector.get("matchLabels")
    pairs: Mapping[str, Any] = wanted if isinstance(wanted, Mapping) else {}
    expressions = selector.get("matchExpressions")
    return all(labels.get(name) == value for name, value in pairs.items()) and all(
        _holds(one, labels)
        for one in (expressions if isinstance(expressions, list) else ())
        if isinstance(one, Mapping)
    )


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    name, values = str(expression.get("key")), expression.get("values")
    among = labels.get(name) in values if isinstance(values, Iterable) else False
    match expression.get("operator"):
        case "In":
            return name in labels and among
        case "NotIn":
            return name not in labels or not among
        case "Exists":
            return name in labels
        case "DoesNotExist":
            return name not in labels
        case _:
            return True  # a policy that cannot be read is not ignored
