"""The status of a Trigger of the class: its addresses and conditions. All input is in memory.

The conditions are Knative's (knative/eventing pkg/apis/eventing/v1/trigger_lifecycle.go), and so are their
reasons where Knative has one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from beckon_contract.knative.addresses import Address
from beckon_contract.knative.broker_class import BECKON_CLASS, TriggerState
from beckon_contract.kubernetes_objects import READY, Condition, Resource, condition
from beckon_operator.broker_class.broker_status import judge_dead_letter
from beckon_operator.broker_class.destinations import Resolution, Unresolved, refuse_address
from beckon_operator.broker_class.references import LookUp, NotFound, Pending
from beckon_operator.broker_class.statuses import MARK, build_status, is_condition_true, true_condition

BROKER_READY = "BrokerReady"
DEPENDENCY_READY = "DependencyReady"
OIDC_IDENTITY = "OIDCIdentityCreated"
SUBSCRIBER_RESOLVED = "SubscriberResolved"
SUBSCRIPTION_READY = "SubscriptionReady"

_NO_OIDC = "authentication-oidc feature not yet supported for this Broker class"
_UNRESOLVED = "Unable to get the Subscriber's URI"


@dataclass(frozen=True, slots=True)
class TriggerFacts:
    """Everything that decides about a Trigger, beside its spec.

    `broker` is `None` if it does not exist. `dead_letter` is that of the delivery in force, `None` without a
    sink. `dependency` is `None` without one.
    """

    problems: Sequence[str]
    broker: Resource | None
    broker_name: str
    subscriber: Resolution
    dead_letter: Resolution | None = None
    dependency: LookUp | None = None

    @property
    def is_pending(self) -> bool:
        """True if a referenced object is not known yet, so that no judgement is possible."""
        return Pending in {type(one) for one in (self.subscriber, self.dead_letter, self.dependency)}


def wanted_state(trigger: Resource, facts: TriggerFacts) -> TriggerState | None:
    """Return the state that every ingress must have; `None` if the Trigger cannot take events.

    A Broker without an address takes none.
    """
    sink, subscriber = judge_dead_letter(facts.dead_letter), _judge_subscriber(facts)
    if facts.broker is None or not facts.broker.status.get("address"):
        return None
    if "False" in (sink.status, subscriber.status) or not isinstance(facts.subscriber, Address):
        return None
    dead_letter = facts.dead_letter.url if isinstance(facts.dead_letter, Address) else ""
    return TriggerState(
        trigger.namespace, trigger.name, trigger.uid, trigger.generation, facts.subscriber.url, dead_letter
    )


def was_in_force(trigger: Resource, state: TriggerState, *, same_version: bool = True) -> bool:
    """Return True if the status says that this state is in force.

    Without `same_version`, an earlier version of the spec with the same addresses counts as well.
    """
    status = trigger.status
    return (
        is_condition_true(status, SUBSCRIPTION_READY)
        and status.get("subscriberUri") == state.subscriber
        and (status.get("deadLetterSinkUri") or "") == state.dead_letter
        and (not same_version or status.get("observedGeneration") == state.generation)
    )


def judge_trigger(trigger: Resource, facts: TriggerFacts, waits_for: str | None, now: str) -> dict[str, Any]:
    """Return the status of a Trigger.

    `waits_for` says which pods do not route by it yet; it is "" if all do, `None` if it cannot be in force.
    """
    subscriber = _judge_subscriber(facts)
    sink = judge_dead_letter(facts.dead_letter)
    conditions = (
        _judge_broker(facts),
        subscriber,
        sink,
        _judge_dependency(facts.dependency),
        true_condition(OIDC_IDENTITY, _NO_OIDC),
        _judge_subscription(waits_for),
    )
    url = (
        facts.subscriber.url if subscriber.status == "True" and isinstance(facts.subscriber, Address) else ""
    )
    dead_letter = facts.dead_letter if sink.status == "True" else None
    fields = {
        # The empty string, if it cannot be resolved (knative/specs, eventing/control-plane.md).
        "subscriberUri": url,
        "deadLetterSinkUri": dead_letter.url if isinstance(dead_letter, Address) else None,
        "annotations": {MARK: BECKON_CLASS},
    }
    return build_status(trigger, conditions, fields, now)


def _judge_broker(facts: TriggerFacts) -> Condition:
    broker = facts.broker
    if broker is None:
        message = f'Broker "{facts.broker_name}" does not exist'
        return Condition(BROKER_READY, "False", "BrokerDoesNotExist", message)
    ready = condition(broker.status, READY)
    if ready is None:
        message = "Broker has not yet been reconciled."
        return Condition(BROKER_READY, "Unknown", "BrokerNotConfigured", message)
    return Condition(BROKER_READY, ready.status, ready.reason, ready.message)


def _judge_subscriber(facts: TriggerFacts) -> Condition:
    if facts.problems:
        return Condition(SUBSCRIBER_RESOLVED, "False", "InvalidSpec", "; ".join(facts.problems))
    subscriber = facts.subscriber
    problem = refuse_address(subscriber, "the subscriber") if isinstance(subscriber, Address) else subscriber
    if isinstance(problem, Unresolved):
        return Condition(SUBSCRIBER_RESOLVED, "False", problem.reason or _UNRESOLVED, problem.message)
    return true_condition(SUBSCRIBER_RESOLVED)


def _judge_dependency(dependency: LookUp | None) -> Condition:
    """Return the condition of the object in the annotation `knative.dev/dependency`."""
    if dependency is None:
        return true_condition(DEPENDENCY_READY)
    if isinstance(dependency, NotFound):
        return Condition(DEPENDENCY_READY, "False", "DependencyDoesNotExist", dependency.message)
    if isinstance(dependency, Pending):
        return Condition(DEPENDENCY_READY, "Unknown", "DependencyNotConfigured", "it is looked up")
    if dependency.generation != dependency.observed_generation:
        message = (
            f"The dependency's metadata.generation, {dependency.generation}, is not equal to its "
            f"status.observedGeneration, {dependency.observed_generation}."
        )
        return Condition(DEPENDENCY_READY, "Unknown", "GenerationNotEqual", message)
    if dependency.ready is None:
        message = "Dependency has not yet been reconciled."
        return Condition(DEPENDENCY_READY, "Unknown", "DependencyNotConfigured", message)
    return Condition(
        DEPENDENCY_READY, dependency.ready.status, dependency.ready.reason, dependency.ready.message
    )


def _judge_subscription(waits_for: str | None) -> Condition:
    if waits_for == "":
        return true_condition(SUBSCRIPTION_READY)
    reason = "SubscriptionNotConfigured" if waits_for is None else "NotInForce"
    message = waits_for or "the Trigger cannot take events yet; another condition says why"
    return Condition(SUBSCRIPTION_READY, "Unknown", reason, message)
