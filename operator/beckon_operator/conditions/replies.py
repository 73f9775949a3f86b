"""The conditions Answerable and DeadLettered: replies and failures reach the shim."""

from beckon_contract.knative.delivery import Delivery
from beckon_contract.knative.routes import Listener
from beckon_contract.kubernetes_objects import Condition, Resource
from beckon_contract.resources.tools import Tool
from beckon_operator.conditions.namespace_view import BrokerView, NamespaceView, same_place

ANSWERABLE = "Answerable"


def judge_answerable(tool: Tool, view: NamespaceView) -> Condition:
    """Return the condition; every tool of one Broker has the same."""
    if tool.dispatch == "direct":
        return Condition(ANSWERABLE, "True", "Direct", "the reply comes in the answer to the call")
    return view.once_a_broker(ANSWERABLE, tool.broker, lambda: _judge_broker_replies(tool.broker, view))


def _judge_broker_replies(broker: str, view: NamespaceView) -> Condition:
    passing = view.reply_listeners(broker)
    to_shim = [one for one in passing if _leads_to_shim(one, view)]
    ready = reply_triggers(broker, view)
    if ready:
        message = f"Trigger {ready[0].trigger.name} brings replies to the shim"
        return Condition(ANSWERABLE, "True", "ReplyTrigger", message)
    if to_shim:
        first = to_shim[0]
        message = f"Trigger {first.trigger.name}, which brings replies, is not ready: {first.not_ready}"
        return Condition(ANSWERABLE, "False", "ReplyTriggerNotReady", message)
    elsewhere = [one for one in passing if not one.catches_all]
    if elsewhere:
        name, leads = elsewhere[0].trigger.name, view.subscriber_url(elsewhere[0]) or "an unknown address"
        message = f"Trigger {name} brings replies to {leads}, not to {view.rules.replies}; correct it"
        return Condition(ANSWERABLE, "False", "RepliesElsewhere", message)
    message = (
        f"no Trigger brings replies of Broker {broker} to the shim; write {_missing_trigger(broker, view)}"
    )
    return Condition(ANSWERABLE, "False", "NoReplyTrigger", message)


def reply_triggers(broker: str, view: NamespaceView) -> list[Listener]:
    """Return the Triggers for a Broker's replies to the shim, by name.

    All of them are or were ready.
    """
    passing = view.reply_listeners(broker)
    return [one for one in passing if not one.not_ready and _leads_to_shim(one, view)]


def _leads_to_shim(listener: Listener, view: NamespaceView) -> bool:
    return same_place(view.subscriber_url(listener), view.rules.replies)


def _missing_trigger(broker: str, view: NamespaceView) -> str:
    """Return the missing reply Trigger as YAML in one line."""
    name = "beckon-replies" if broker == "default" else f"beckon-replies-{broker}"
    return (
        "{apiVersion: eventing.knative.dev/v1, kind: Trigger, "
        f"metadata: {{name: {name}, namespace: {view.namespace}}}, spec: {{broker: {broker}, "
        f'filter: {{attributes: {{{view.rules.reply_attribute}: ""}}}}, '
        f'subscriber: {{uri: "{view.rules.replies}"}}}}}}'
    )


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
