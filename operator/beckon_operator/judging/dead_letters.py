"""The condition DeadLettered: undeliverable calls are reported to the shim.

A Trigger with a `delivery` of its own replaces that of its Broker as a whole, even if it names no dead-letter
sink (knative/specs, specs/eventing/control-plane.md).
"""

from beckon_contract.knative.delivery import Delivery
from beckon_contract.knative.routes import Listener
from beckon_contract.kubernetes_objects import Condition, Resource
from beckon_contract.resources.tools import Tool
from beckon_operator.judging.namespace_view import BrokerView, NamespaceView
from beckon_operator.judging.rules import same_place

DEAD_LETTERED = "DeadLettered"


def judge_dead_lettered(tool: Tool, view: NamespaceView) -> Condition:
    """Return the condition; the first Trigger bypassing the shim decides."""
    if tool.dispatch == "direct":
        return Condition(DEAD_LETTERED, "True", "Direct", "a failure comes in the answer to the call")
    broker = view.brokers.get(tool.broker)
    if broker is None or broker.delivery is None:
        message = f"there is no usable Broker {tool.broker}"
        return Condition(DEAD_LETTERED, "Unknown", "BrokerNotFound", message)
    listeners = view.listeners_for(tool.type)
    by_broker = view.once_a_broker(
        DEAD_LETTERED, tool.broker, lambda: _judge_broker_delivery(tool.broker, broker, view)
    )
    found = [_judge_trigger_delivery(listeners[name], view) or by_broker for name in tool.routes] or [
        by_broker
    ]
    return next((one for one in found if one.status != "True"), found[0])


def _judge_trigger_delivery(listener: Listener, view: NamespaceView) -> Condition | None:
    """Return the dead-letter condition of a Trigger's own delivery.

    It is `None` if the Trigger leaves delivery to the Broker.
    """
    delivery = listener.trigger.delivery
    if delivery is None:
        return None
    name = f"Trigger {listener.trigger.name}"
    if delivery.dead_letter is None:
        message = (
            f"{name} has a spec.delivery without deadLetterSink, which replaces the Broker's whole; "
            f'add deadLetterSink: {{uri: "{view.rules.dead_letters}"}}, or leave spec.delivery out'
        )
        return Condition(DEAD_LETTERED, "False", "TriggerOverrides", message)
    return _of_sink(name, delivery, listener.resource, view)


def _judge_broker_delivery(name: str, broker: BrokerView, view: NamespaceView) -> Condition:
    delivery = broker.delivery
    if delivery is None or delivery.dead_letter is None:
        message = (
            f"Broker {name} has no dead-letter sink, so an undeliverable call shows as a time-out; "
            f'set its spec.delivery.deadLetterSink: {{uri: "{view.rules.dead_letters}"}}'
        )
        return Condition(DEAD_LETTERED, "False", "NoDeadLetterSink", message)
    return _of_sink(f"Broker {name}", delivery, broker.resource, view)


def _of_sink(owner: str, delivery: Delivery, resource: Resource, view: NamespaceView) -> Condition:
    sink = delivery.dead_letter
    url = view.url_of(sink, resource.status.get("deadLetterSinkUri")) if sink else ""
    if same_place(url, view.rules.dead_letters):
        return _reports_to_shim(view)
    leads = url or "an unknown address"
    message = (
        f"{owner} sends dead letters to {leads}, not to {view.rules.dead_letters}, "
        "so an undeliverable call shows as a time-out"
    )
    return Condition(DEAD_LETTERED, "False", "OtherSink", message)


def _reports_to_shim(view: NamespaceView) -> Condition:
    message = f"dead letters go to {view.rules.dead_letters}"
    return Condition(DEAD_LETTERED, "True", "ToShim", message)
