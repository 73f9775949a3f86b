"""Triggers and Brokers, checked as Knative's admission does, and read for delivery.

Written against knative/eventing pkg/apis/eventing/v1 (trigger_validation.go,
broker_validation.go) and the CRD schemas of Trigger and Broker. Where Knative stops at
the first type error, everything is reported in one pass.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson

from beckon_contract.fields import FieldProblem, Fields, InvalidFields, ReportProblem, describe
from beckon_contract.knative.delivery import (
    DEFAULT_DELIVERY,
    REFERENCE_FIELDS,
    Delivery,
    Destination,
    read_delivery,
    read_destination,
    read_reference,
)
from beckon_contract.knative.filters import EventFilter, read_filter, required_attributes
from beckon_contract.kubernetes_objects import Key, Resource

GROUP = "eventing.knative.dev"
DEPENDENCY_ANNOTATION = "knative.dev/dependency"
INJECTION_ANNOTATION = "eventing.knative.dev/injection"
ORDER_ANNOTATION = "beckon.dev/delivery-order"
_BROKER_FIELDS = ("config", "delivery")
_TRIGGER_FIELDS = ("broker", "brokerRef", "delivery", "filter", "filters", "subscriber")


class InvalidResource(InvalidFields):
    """Knative would refuse this object; `problems` holds every reason, each with its field."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """A subscriber of a Broker, with its filter and delivery.

    `delivery` replaces the Broker's as a whole.

    `warnings` name fields that Knative accepts and that probably do not do what was meant. `required` are
    attributes without which no event passes the filter (`required_attributes`). An `ordered` Trigger gets its
    events one after the other, in the order in which Beckon's broker accepted them.
    """

    key: Key
    namespace: str
    name: str
    broker: str
    filter: EventFilter
    subscriber: Destination
    delivery: Delivery | None
    warnings: tuple[FieldProblem, ...] = ()
    required: Mapping[str, str] = field(default_factory=dict)
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Broker:
    """A Broker, and its delivery for Triggers without their own."""

    key: Key
    namespace: str
    name: str
    delivery: Delivery
    warnings: tuple[FieldProblem, ...] = ()


def parse_trigger(resource: Resource) -> Trigger:
    """Read a Trigger; raise `InvalidResource` with every mistake."""
    report = ReportProblem()
    _check_kind(resource, "Trigger", report)
    spec = Fields(resource.spec, "spec", report)
    spec.refuse_unknown(_TRIGGER_FIELDS)
    broker = _broker_name(spec)
    event_filter = read_filter(spec)
    subscriber = spec.child("subscriber") or Fields({}, spec.at("subscriber"), report)
    destination = read_destination(subscriber, resource.namespace)
    delivery = spec.child("delivery")
    policy = read_delivery(delivery, resource.namespace) if delivery else None
    _check_annotations(resource, broker, report)
    if report.problems:
        raise InvalidResource(report.problems)
    return Trigger(
        key=resource.key,
        namespace=resource.namespace,
        name=resource.name,
        broker=broker,
        filter=event_filter,
        subscriber=destination,
        delivery=policy,
        warnings=tuple(report.warnings),
        required=required_attributes(resource.spec),
        ordered=resource.annotations.get(ORDER_ANNOTATION) == "ordered",
    )


def broker_of(trigger: Resource) -> str:
    """Return the name of a Trigger's Broker, "" if it names none."""
    ref = trigger.spec.get("brokerRef")
    name = trigger.spec.get("broker") or (ref.get("name") if isinstance(ref, Mapping) else "")
    return name if isinstance(name, str) else ""


def parse_broker(resource: Resource) -> Broker:
    """Read a Broker; raise `InvalidResource` with every mistake."""
    report = ReportProblem()
    _check_kind(resource, "Broker", report)
    spec = Fields(resource.spec, "spec", report)
    spec.refuse_unknown(_BROKER_FIELDS)
    config = spec.child("config")
    if config:
        read_reference(config, resource.namespace)
    delivery = spec.child("delivery")
    policy = read_delivery(delivery, resource.namespace) if delivery else DEFAULT_DELIVERY
    if report.problems:
        raise InvalidResource(report.problems)
    return Broker(
        key=resource.key,
        namespace=resource.namespace,
        name=resource.name,
        delivery=policy,
        warnings=tuple(report.warnings),
    )


def _check_kind(resource: Resource, kind: str, report: ReportProblem) -> None:
    if (resource.group, resource.kind) != (GROUP, kind):
        actual = f"{resource.api_version} {resource.kind}"
        report.problems.append(FieldProblem("kind", f"must be a {kind} of {GROUP}, not {actual}"))


def _broker_name(spec: Fields) -> str:
    """Return the name of the Broker in the Trigger's namespace. Another namespace is noted as a mistake."""
    name = spec.text("broker")
    ref = spec.child("brokerRef")
    if ref:
        if ref.text("namespace"):
            ref.problem("namespace", "must not be set; a Trigger lives in the namespace of its Broker")
        name = name or ref.text("name")
    if not name and not spec.values.get("broker"):
        spec.problem("broker", "missing; write the name of the Broker, such as default")
    return name or ""


def _check_annotations(resource: Resource, broker: str, report: ReportProblem) -> None:
    dependency = resource.annotations.get(DEPENDENCY_ANNOTATION)
    if dependency is not None:
        _check_dependency(dependency, resource.namespace, report)
    order = resource.annotations.get(ORDER_ANNOTATION, "unordered")
    if order not in {"ordered", "unordered"}:
        path = f"metadata.annotations[{ORDER_ANNOTATION}]"
        report.problems.append(FieldProblem(path, f"must be ordered or unordered, not {order!r}"))
    injection = resource.annotations.get(INJECTION_ANNOTATION)
    if injection is None:
        return
    path = f"metadata.annotations[{INJECTION_ANNOTATION}]"
    if injection not in {"enabled", "disabled"}:
        report.problems.append(FieldProblem(path, f"must be enabled or disabled, not {injection!r}"))
    elif broker != "default":
        message = f"creates only the Broker called default, not {broker!r}; remove the annotation"
        report.problems.append(FieldProblem(path, message))


def _check_dependency(text: str, namespace: str, report: ReportProblem) -> None:
    """Check the dependency annotation, an ObjectReference in JSON. It names an object to wait for."""
    path = f"metadata.annotations[{DEPENDENCY_ANNOTATION}]"
    try:
        reference = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        reference, why = None, f"is no JSON: {error}"
    else:
        why = f"is {describe(reference)}"
    if not isinstance(reference, Mapping):
        message = f'{why}; write {{"apiVersion": "…", "kind": "…", "name": "…"}}'
        report.problems.append(FieldProblem(path, message))
        return
    # An ObjectReference may say more, such as a uid; it is not looked at.
    known = {name: reference.get(name) for name in REFERENCE_FIELDS}
    fields = Fields(known, path, report)
    if read_reference(fields, namespace).namespace != namespace:
        fields.problem("namespace", f"must be that of the Trigger, {namespace!r}; leave it out")
