"""The Triggers that bring replies and progress reports to the shim, by the class of their Broker.

A Broker of the class `Beckon` gives each reply the token of its call, in the reply attribute. With the other
classes a service answers by that attribute, by the correlation attribute of the call that it copies, or by an
attribute that its EventType names. The call itself has the correlation attribute, too. No filter can compare
it with its reply; but agents send calls, and services send replies, so the source differs. A
call from elsewhere passes, and the shim drops it.
"""

from collections.abc import Iterable
from typing import Any

from beckon_contract.cloudevents.extensions import PROGRESS_MARK
from beckon_contract.knative.broker_class import BECKON_CLASS
from beckon_contract.kubernetes_objects import Resource

REPLY_ATTRIBUTE = "replyid"
CORRELATION_ATTRIBUTE = "correlationid"
AGENTS = "/beckon/agents/"
"""The beginning of the CloudEvents source of agents."""

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "beckon-operator"

REPLIES_PATH = "/replies"
PROGRESS_PATH = "/progress"
DEAD_LETTERS_PATH = "/dead-letters"

# Almost 15 minutes in all: the shim acknowledges the answer to a run that waits only when an agent has stored
# it, and the agents or their database may be away for minutes. Linear, so that the pause never becomes much
# longer than the outage was: half a second at first, 30 s at the end.
_REPLY_DELIVERY: dict[str, Any] = {"retry": 60, "backoffPolicy": "linear", "backoffDelay": "PT0.5S"}


def is_managed(trigger: Resource) -> bool:
    """Return True for a Trigger that the operator has written."""
    return trigger.labels.get(MANAGED_BY) == MANAGER


def reply_trigger_name(broker: str) -> str:
    """Return the name of a Broker's Trigger for replies."""
    return f"{broker}-beckon-replies"


def progress_trigger_name(broker: str) -> str:
    """Return the name of a Broker's Trigger for progress reports."""
    return f"{broker}-beckon-progress"


def reply_trigger_spec(broker: str, shim_url: str, passes: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a Broker's Trigger for replies; `passes` is its filter.

    `shim_url` is the address of the shim for replies, without a path.
    """
    return {
        "broker": broker,
        **passes,
        "subscriber": {"uri": f"{shim_url}{REPLIES_PATH}"},
        "delivery": {**_REPLY_DELIVERY, "deadLetterSink": {"uri": f"{shim_url}{DEAD_LETTERS_PATH}"}},
    }


def progress_trigger_spec(broker: str, shim_url: str, broker_class: str) -> dict[str, Any]:
    """Return the spec of a Broker's Trigger for progress reports."""
    if broker_class == BECKON_CLASS:
        passes: dict[str, Any] = {"filter": {"attributes": {PROGRESS_MARK: ""}}}
    else:
        passes = named_filter(PROGRESS_MARK)
    return {
        "broker": broker,
        **passes,
        "subscriber": {"uri": f"{shim_url}{PROGRESS_PATH}"},
        "delivery": {"retry": 0},  # a report is overtaken by the next one
    }


def reply_filter(
    broker_class: str, reply: str = REPLY_ATTRIBUTE, named: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the filter in the spec of the reply Trigger of a Broker.

    `named` are the attributes that EventTypes of the Broker name for replies. Kafka takes an empty value in
    `filter.attributes` for no constraint, and RabbitMQ for the empty text, which no reply has; in CESQL
    (`filters`) Kafka and Knative's default class agree, and RabbitMQ ignores it, so that every event passes.
    """
    if broker_class == BECKON_CLASS:
        return {"filter": {"attributes": {reply: ""}}}
    return {"filters": [{"cesql": _reply_expression(reply, named)}]}


def _reply_expression(reply: str, named: Iterable[str]) -> str:
    """Return the CESQL expression that is true for replies, and false for the calls of agents."""
    attributes = dict.fromkeys((reply, *sorted(named)))
    certain = " OR ".join(f"EXISTS {name}" for name in attributes)
    return f"{certain} OR (EXISTS {CORRELATION_ATTRIBUTE} AND source NOT LIKE '{AGENTS}%')"


def named_filter(attribute: str) -> dict[str, Any]:
    """Return the filter of a Trigger for the events with one attribute: named for replies, or of reports."""
    return {"filters": [{"cesql": f"EXISTS {attribute}"}]}
