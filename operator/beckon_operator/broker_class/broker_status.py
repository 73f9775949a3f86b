"""The status of a Broker of the class: its address and conditions. All input is in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from beckon_contract.knative.addresses import Address
from beckon_contract.knative.broker_class import LogReport
from beckon_contract.kubernetes_objects import Condition, Resource
from beckon_operator.broker_class.broker_config import BrokerConfig, compare_config
from beckon_operator.broker_class.destinations import Resolution, Unresolved, refuse_address
from beckon_operator.broker_class.statuses import build_status, find_false, true_condition

ADDRESSABLE = "Addressable"
CONFIG_PARSED = "ConfigParsed"
DEAD_LETTER_RESOLVED = "DeadLetterSinkResolved"
EVENT_POLICIES = "EventPoliciesReady"
INGRESS = "IngressReady"
LOG = "LogReady"

# Knative's own reasons and messages (knative/eventing pkg/apis/eventing/v1/broker_lifecycle.go).
NO_DEAD_LETTER = ("DeadLetterSinkNotConfigured", "No dead letter sink is configured.")
UNRESOLVED_SINK = "Unable to get the dead letter sink's URI"


@dataclass(frozen=True, slots=True)
class IngressView:
    """The pods of the ingress: how many are ready, the log of each that answers, and other answers."""

    pods: int = 0
    logs: Mapping[str, LogReport] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """Everything that decides about a Broker, beside its spec.

    `config` is a text if the ConfigMap cannot be used. `dead_letter` is `None` without a sink. `policies` are
    the names of the EventPolicies that apply.
    """

    problems: Sequence[str]
    config: BrokerConfig | str
    dead_letter: Resolution | None
    policies: Sequence[str]
    ingress: IngressView
    ingress_service: str
    secret: str
    url: str


def judge_broker(broker: Resource, facts: BrokerFacts, now: str) -> dict[str, Any]:
    """Return the status of a Broker.

    One that must not take events has no address, and the ingress answers its events with 404: its ConfigMap
    asks for another log, or EventPolicies limit its senders.
    """
    config, policies = _judge_config(facts), _judge_policies(facts.policies)
    refused = find_false((config, policies))
    addressable = true_condition(ADDRESSABLE)
    if refused is not None:
        addressable = Condition(ADDRESSABLE, "False", refused.reason, "the Broker takes no events")
    sink = judge_dead_letter(facts.dead_letter)
    conditions = (config, policies, _judge_ingress(facts), _judge_log(facts.ingress), sink, addressable)
    dead_letter = facts.dead_letter if sink.status == "True" else None
    fields = {
        "address": None if refused else {"name": "http", "url": facts.url},
        "deadLetterSinkUri": dead_letter.url if isinstance(dead_letter, Address) else None,
    }
    return build_status(broker, conditions, fields, now)


def judge_dead_letter(sink: Resolution | None) -> Condition:
    """Return the condition of a dead-letter sink, for Brokers and Triggers."""
    if sink is None:
        return true_condition(DEAD_LETTER_RESOLVED, *NO_DEAD_LETTER)
    problem = refuse_address(sink, "the dead-letter sink") if isinstance(sink, Address) else sink
    if isinstance(problem, Unresolved):
        return Condition(DEAD_LETTER_RESOLVED, "False", problem.reason or UNRESOLVED_SINK, problem.message)
    return true_condition(DEAD_LETTER_RESOLVED)


def _judge_config(facts: BrokerFacts) -> Condition:
    if facts.problems:
        return Condition(CONFIG_PARSED, "False", "InvalidSpec", "; ".join(facts.problems))
    if isinstance(facts.config, str):
        return Condition(CONFIG_PARSED, "False", "InvalidConfig", facts.config)
    for log in facts.ingress.logs.values():
        if difference := compare_config(facts.config, log, facts.secret):
            return Condition(CONFIG_PARSED, "False", "ConfigDiffers", difference)
    return true_condition(CONFIG_PARSED)


def _judge_policies(policies: Sequence[str]) -> Condition:
    if not policies:
        reason, message = "NoEventPolicies", "no EventPolicy applies: every sender in the cluster may send"
        return true_condition(EVENT_POLICIES, reason, message)
    message = (
        f"EventPolicy {', '.join(policies)} limits who may send events to this Broker; the class Beckon does "
        "not authenticate senders: remove the policy, or use a Broker of another class"
    )
    return Condition(EVENT_POLICIES, "False", "EventPoliciesNotSupported", message)


def _judge_ingress(facts: BrokerFacts) -> Condition:
    if facts.ingress.pods:
        return true_condition(INGRESS)
    message = (
        f"Service {facts.ingress_service} has no ready pod: wait, or start the pods of the class "
        "(brokerClass.enabled in the chart's values, or kubectl apply -k deploy/broker-class)"
    )
    return Condition(INGRESS, "False", "NoIngress", message)


def _judge_log(ingress: IngressView) -> Condition:
    """Return the condition of the log: met if one ready pod can store events.

    A pod that cannot answers its events with 503, and their senders come again.
    """
    if not ingress.logs:
        silent = "; ".join(f"{pod}: {error}" for pod, error in sorted(ingress.silent.items()))
        message = silent or "no pod of the ingress has reported its log yet"
        return Condition(LOG, "Unknown", "IngressSilent", message)
    problems = {pod: log.problem for pod, log in ingress.logs.items() if log.problem}
    if len(problems) < len(ingress.logs):
        if any(log.address for log in ingress.logs.values()):
            return true_condition(LOG)
        return true_condition(LOG, "InMemory", "events are in memory, and lost with the broker's pods")
    return Condition(LOG, "False", "LogUnavailable", next(iter(problems.values())))
