"""The condition Answerable: replies of the tool's Broker reach the shim."""

from beckon_contract.knative.routes import Listener
from beckon_contract.kubernetes_objects import Condition
from beckon_contract.resources.tools import Tool
from beckon_operator.judging.namespace_view import NamespaceView
from beckon_operator.judging.rules import same_place

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
        name, leads = elsewhere[0].trigger.name, _subscriber_url(elsewhere[0], view) or "an unknown address"
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
    return same_place(_subscriber_url(listener, view), view.rules.replies)


def _subscriber_url(listener: Listener, view: NamespaceView) -> str:
    return view.url_of(listener.trigger.subscriber, listener.resource.status.get("subscriberUri"))


def _missing_trigger(broker: str, view: NamespaceView) -> str:
    """Return the missing reply Trigger as YAML in one line."""
    name = "beckon-replies" if broker == "default" else f"beckon-replies-{broker}"
    return (
        "{apiVersion: eventing.knative.dev/v1, kind: Trigger, "
        f"metadata: {{name: {name}, namespace: {view.namespace}}}, spec: {{broker: {broker}, "
        f'filter: {{attributes: {{{view.rules.reply_attribute}: ""}}}}, '
        f'subscriber: {{uri: "{view.rules.replies}"}}}}}}'
    )
