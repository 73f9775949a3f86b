"""Brokers of the class and their Triggers, and what becomes of them."""

from tests.cluster.kube import Kube, condition, until
from tests.cluster.operator.objects import Document, thing

EVENTING = "eventing.knative.dev/v1"
URI = {"uri": "http://weather.example.svc"}


def broker(name: str = "default", class_: str = "Beckon", **spec: object) -> Document:
    annotations = {"eventing.knative.dev/broker.class": class_}
    return thing(EVENTING, "Broker", name, dict(spec), annotations=annotations)


def trigger(name: str = "weather", subscriber: Document = URI, **spec: object) -> Document:
    metadata = {"annotations": spec.pop("annotations")} if "annotations" in spec else {}
    base = {"broker": "default", "subscriber": subscriber}
    return thing(EVENTING, "Trigger", name, {**base, **spec}, **metadata)


def becomes(kube: Kube, kind: str, name: str, status: str, which: str = "Ready") -> tuple[str, str]:
    """Wait for the status of a condition; return reason and message."""

    def found() -> tuple[str, str, str] | None:
        seen = condition(kube.find(kind, name), which)
        return seen if seen[0] == status else None

    _, reason, message = until(found, within=60, what=f"{which}={status} of {kind} {name}") or ("", "", "")
    return reason, message
