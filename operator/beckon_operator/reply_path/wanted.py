"""The Triggers and the time limit that a Broker needs for replies, and what is to be written for them.

A Broker carries calls if a tool is called through it, or if its dead letters go to the shim. A Trigger
written here has a label that says so. It is repaired when it changes, even if its Broker carries no more
calls: an answer may come hours after its call. A Trigger of others that does the same work replaces it once
it is Ready. Without the label a Trigger is one of others.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from beckon_contract.cloudevents.extensions import PROGRESS_MARK
from beckon_contract.knative.broker_class import BECKON_CLASS, class_of
from beckon_contract.knative.reply_triggers import (
    MANAGED_BY,
    MANAGER,
    is_managed,
    progress_trigger_name,
    progress_trigger_spec,
    reply_filter,
    reply_trigger_name,
    reply_trigger_spec,
)
from beckon_contract.knative.routes import Listener, read_trigger
from beckon_contract.kubernetes_objects import Resource
from beckon_operator.conditions.namespace_view import JudgingRules, same_place
from beckon_operator.objects import BROKERS, TRIGGERS, ObservedObject

_LABELS = {
    MANAGED_BY: MANAGER,
    "app.kubernetes.io/name": "beckon",
    "app.kubernetes.io/component": "broker",
}

Action = Literal["create", "patch", "delete"]


class BrokerUse(NamedTuple):
    """The tools that are called through a Broker.

    `attributes` are those that EventTypes name for replies, `seconds` is the longest time limit of a call
    that an EventType sets, 0 without one.
    """

    attributes: frozenset[str] = frozenset()
    seconds: float = 0.0


class Change(NamedTuple):
    """One request: create or patch with a document, or delete the Trigger `stored`."""

    action: Action
    name: str
    document: Mapping[str, Any]
    stored: ObservedObject | None = None


class Problem(NamedTuple):
    """A Trigger that cannot be written, with the reason."""

    name: str
    message: str


@dataclass(frozen=True, slots=True)
class _Task:
    """One of the two Triggers of a Broker: its name, its spec, and an event that it must pass."""

    name: str
    spec: Mapping[str, Any]
    event: Mapping[str, str]

    @property
    def url(self) -> str:
        """The address of the shim to which it leads."""
        return str(self.spec["subscriber"]["uri"])


def subscriber_url(trigger: Resource) -> str:
    """Return the address to which a Trigger delivers, "" if it is not known yet."""
    subscriber = trigger.spec.get("subscriber")
    written = subscriber.get("uri") if isinstance(subscriber, Mapping) and not subscriber.get("ref") else None
    url = written or trigger.status.get("subscriberUri")
    return url if isinstance(url, str) else ""


def leads_to_shim(trigger: Resource, rules: JudgingRules) -> bool:
    """Return True if a Trigger brings events to the shim."""
    url = subscriber_url(trigger)
    return any(same_place(url, place) for place in (rules.replies, rules.progress))


def sends_dead_letters_to_shim(broker: Resource, rules: JudgingRules) -> bool:
    """Return True if the dead letters of a Broker go to the shim."""
    delivery = broker.spec.get("delivery")
    sink = delivery.get("deadLetterSink") if isinstance(delivery, Mapping) else None
    uri = sink.get("uri") if isinstance(sink, Mapping) and not sink.get("ref") else None
    url = uri or broker.status.get("deadLetterSinkUri")
    return isinstance(url, str) and same_place(url, rules.dead_letters)


def plan_triggers(
    broker: Resource,
    use: BrokerUse | None,
    triggers: Sequence[ObservedObject],
    named: Mapping[str, ObservedObject],
    rules: JudgingRules,
) -> tuple[list[Change], list[Problem]]:
    """Return what is to be written for a Broker, and what cannot be.

    `use` is `None` if no tool is called through it. `triggers` are those of the Broker that are managed or
    lead to the shim, and `named` are all Triggers of the namespace by name.
    """
    managed = [one for one in triggers if is_managed(one.resource)]
    if use is None and not managed and not sends_dead_letters_to_shim(broker, rules):
        return [], []
    others = [one for one in triggers if not is_managed(one.resource) and not one.leaving]
    listeners = (read_trigger(one.resource, controlled=True) for one in others)
    read = [one for one in listeners if isinstance(one, Listener)]
    changes, problems = list[Change](), list[Problem]()
    for task in _tasks_of(broker, use or BrokerUse(), rules):
        own, occupant = next((one for one in managed if one.name == task.name), None), named.get(task.name)
        change = _plan_task(broker, task, own, [one for one in read if _does(one, task)])
        if change is not None and change.action == "create" and occupant is not None:
            where = "is being deleted" if occupant.leaving else "was written by others, and does other work"
            problems.append(Problem(task.name, f"a Trigger of this name {where}; rename it"))
        elif change is not None:
            changes.append(change)
    return changes, problems


def _tasks_of(broker: Resource, use: BrokerUse, rules: JudgingRules) -> Iterable[_Task]:
    broker_class = class_of(broker)
    event = {"specversion": "1.0", "id": "reply", "source": "/tool", "type": "reply"}
    # A Broker of the class Beckon gives each reply the usual attribute.
    attributes = () if broker_class == BECKON_CLASS else use.attributes
    passes = reply_filter(broker_class, rules.reply_attribute, attributes)
    spec = reply_trigger_spec(broker.name, rules.origin, passes)
    yield _Task(reply_trigger_name(broker.name), spec, {**event, rules.reply_attribute: "token"})
    progress = progress_trigger_spec(broker.name, rules.origin, broker_class)
    yield _Task(progress_trigger_name(broker.name), progress, {**event, PROGRESS_MARK: "token"})


def _plan_task(
    broker: Resource, task: _Task, own: ObservedObject | None, others: Sequence[Listener]
) -> Change | None:
    if own is None:
        return None if others else Change("create", task.name, _new_trigger(broker, task))
    if own.leaving:
        return None
    if any(not one.not_ready for one in others):
        return Change("delete", task.name, {}, own)
    change = _merge_change(own.resource.spec, task.spec)
    owners = [owner for owner in own.resource.owners if owner.get("kind") != BROKERS.name]
    document: dict[str, Any] = {"spec": change} if change else {}
    if not any(owner.get("uid") == broker.uid for owner in own.resource.owners):
        document["metadata"] = {"ownerReferences": [*owners, _owner(broker)]}
    return Change("patch", task.name, document, own) if document else None


def _does(listener: Listener, task: _Task) -> bool:
    """Return True if a Trigger of others does the work of a managed one."""
    leads = same_place(subscriber_url(listener.resource), task.url)
    return leads and listener.trigger.filter(task.event)


def _new_trigger(broker: Resource, task: _Task) -> dict[str, Any]:
    return {
        "apiVersion": TRIGGERS.api_version,
        "kind": TRIGGERS.name,
        "metadata": {
            "name": task.name,
            "namespace": broker.namespace,
            "labels": _LABELS,
            "ownerReferences": [_owner(broker)],
        },
        "spec": task.spec,
    }


def _owner(broker: Resource) -> dict[str, Any]:
    """Return the reference by which Kubernetes deletes the Triggers with their Broker."""
    return {
        "apiVersion": BROKERS.api_version,
        "kind": BROKERS.name,
        "name": broker.name,
        "uid": broker.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def _merge_change(stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch that makes a stored mapping the wanted one, {} if it is already.

    Empty mappings do not count: Knative's defaults add them, such as `filter: {}`.
    """
    change: dict[str, Any] = {
        name: None for name, value in stored.items() if name not in wanted and value != {}
    }
    for name, value in wanted.items():
        actual = stored.get(name)
        if isinstance(value, Mapping) and isinstance(actual, Mapping):
            if inner := _merge_change(actual, value):
                change[name] = inner
        elif actual != value:
            change[name] = value
    return change


TIMEOUT_WRITTEN = "beckon.dev/delivery-timeout"
"""The annotation of a Broker with the time limit that the operator wrote: another one is of others."""

# Kafka delivers a limited number of events of one Trigger at once, and gives an attempt 600 s where the
# Broker says nothing (eventing-kafka-broker, WebClientCloudEventSender). Calls of a slow tool whose callers
# have given up hold those places so long, and quick calls wait behind them past their own deadline.
_LIMITED_CLASSES = frozenset(("Kafka",))
_LEAST = 120.0  # seconds: four times the limit of a call whose EventType says nothing
_LONGEST = 600.0  # seconds: Kafka's own. A tool that needs longer acknowledges the call and answers later


def plan_timeout(broker: Resource, longest_call: float) -> dict[str, Any] | None:
    """Return the patch of a Broker that needs another time limit, `None` for all others.

    `longest_call` is the longest time limit of its tools in seconds. A Broker without any `spec.delivery`
    stays as it is: with one, the defaults of its class would no longer count.
    """
    delivery = broker.spec.get("delivery")
    if class_of(broker) not in _LIMITED_CLASSES or not isinstance(delivery, Mapping):
        return None
    wanted = f"PT{math.ceil(min(max(_LEAST, longest_call), _LONGEST))}S"
    timeout = delivery.get("timeout")
    if not delivery or timeout == wanted or (timeout and timeout != broker.annotations.get(TIMEOUT_WRITTEN)):
        return None
    return {"metadata": {"annotations": {TIMEOUT_WRITTEN: wanted}}, "spec": {"delivery": {"timeout": wanted}}}
