"""The conditions of a call's path: Routed, Answerable, RepliesArrive and DeadLettered.

A call has to reach the tool's service, and replies and failures have to reach the shim. Otherwise the
condition gives the obstacle.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

from beckon_contract.catalogue.builder import Entry
from beckon_contract.knative.addresses import Unaddressable
from beckon_contract.knative.delivery import Delivery, Reference
from beckon_contract.knative.reply_triggers import (
    is_managed,
    named_filter,
    reply_filter,
    reply_trigger_name,
    reply_trigger_spec,
)
from beckon_contract.knative.routes import CallRoute, Listener, make_route
from beckon_contract.kubernetes_objects import READY, Condition, Resource, condition
from beckon_contract.resources.tools import Tool
from beckon_operator.conditions.namespace_view import (
    BrokerView,
    NamespaceView,
    is_knative_service,
    same_place,
)

ROUTED = "Routed"
_NOT_JUDGED = "Knative has not judged it yet"


def judge_routed(entry: Entry, tool: Tool, view: NamespaceView) -> tuple[Condition, Tool]:
    """Return the condition and the tool, with the address for direct calls."""
    if tool.dispatch == "direct":
        return _judge_direct(entry, tool, view)
    return next(_find_obstacles(entry, tool, view), None) or _routed_condition(tool, view), tool


def routes_of(tool: Tool, view: NamespaceView) -> tuple[CallRoute, ...]:
    """Return the Triggers of a tool's calls with their subscribers.

    They may be ready or not. A tool with direct calls has none.
    """
    if tool.dispatch == "direct":
        return ()
    broker = view.brokers.get(tool.broker)
    return tuple(
        make_route(listener, broker.delivery if broker else None, view.subscriber_url(listener))
        for listener in _listeners_of(tool, view)
    )


def _judge_direct(entry: Entry, tool: Tool, view: NamespaceView) -> tuple[Condition, Tool]:
    """Judge a direct call to the service in spec.reference."""
    if entry.unrouted is not None:
        return _not_routed(entry.unrouted.reason, f"spec.reference {entry.unrouted.message}"), tool
    reference = tool.reference
    if reference is None:
        return _not_routed("NoReference", "write the service that takes the call in spec.reference"), tool
    if not is_knative_service(reference) and (reference.kind, reference.api_version) != ("Service", "v1"):
        what = f"{reference.api_version} {reference.kind}"
        message = f"spec.reference names a {what}; a direct call needs a Service of Kubernetes or of Knative"
        return _not_routed("AddressUnknown", message), tool
    obstacle = _service_obstacle(reference, view) if is_knative_service(reference) else None
    if obstacle is not None:
        return obstacle, tool
    try:
        address = view.address_of(reference)
    except Unaddressable as error:
        return _not_routed("AddressUnknown", f"spec.reference: {error}"), tool
    return Condition(ROUTED, "True", "Direct", f"calls go to {address}"), replace(tool, address=address)


def _find_obstacles(entry: Entry, tool: Tool, view: NamespaceView) -> Iterator[Condition]:
    """Yield the obstacles between calls and the service, most urgent first."""
    unrouted = entry.unrouted
    if unrouted is not None and unrouted.field == "spec.reference.namespace":
        yield _not_routed(unrouted.reason, f"{unrouted.field}: {unrouted.message}")
    broker = view.brokers.get(tool.broker)
    if broker is None:
        yield _not_routed("BrokerNotFound", _missing_broker(tool, view, unrouted.message if unrouted else ""))
        return
    if unrouted is not None and unrouted.reason != "TriggerNotReady":
        yield _not_routed(unrouted.reason, unrouted.message)
    yield from _broker_obstacles(tool.broker, broker)
    yield from _subscriber_obstacles(tool, view)
    if unrouted is not None:
        yield _not_routed(unrouted.reason, unrouted.message)


def _missing_broker(tool: Tool, view: NamespaceView, also: str) -> str:
    where = f"namespace {view.namespace} has no Broker {tool.broker}"
    known = ", ".join(sorted(view.brokers)[:3])
    cure = f"create it, or name one of {known} in the Trigger" if known else "create it"
    return f"{where}; {cure}{f'; besides, {also}' if also else ''}"


def _broker_obstacles(name: str, broker: BrokerView) -> Iterator[Condition]:
    # One that was ready has an outage: the condition Available shows it, and calls wait.
    if broker.last_ready is None and (broker.ready is None or broker.ready.status != "True"):
        why = broker.ready.words if broker.ready else _NOT_JUDGED
        yield _not_routed("BrokerNotReady", f"Broker {name} is not ready: {why}")


def _subscriber_obstacles(tool: Tool, view: NamespaceView) -> Iterator[Condition]:
    """Yield the subscribers' problems, unless one of them takes the call."""
    listeners = _listeners_of(tool, view)
    obstacles = [_subscriber_obstacle(listener, view) for listener in listeners]
    if listeners and all(obstacles):
        yield from (obstacle for obstacle in obstacles if obstacle)


def _listeners_of(tool: Tool, view: NamespaceView) -> list[Listener]:
    """Return the ready Triggers for the call, or else all of them."""
    listeners = view.listeners_for(tool.type)
    if tool.routes:
        return [listeners[name] for name in tool.routes]
    return [listener for listener in view.router.passing(tool) if listener.trigger.broker == tool.broker]


def _subscriber_obstacle(listener: Listener, view: NamespaceView) -> Condition | None:
    reference = listener.trigger.subscriber.ref
    if reference is None or reference.namespace != view.namespace or not is_knative_service(reference):
        return None
    return _service_obstacle(reference, view, f", the subscriber of Trigger {listener.trigger.name}")


def _service_obstacle(reference: Reference, view: NamespaceView, role: str = "") -> Condition | None:
    """Return the reason why a Knative Service takes no calls, if any.

    A Service with an earlier ready revision takes calls.
    """
    called = f"Knative Service {reference.name}{role}"
    service = view.services.get(reference.name)
    if service is None:
        return _not_routed(
            "ServiceNotFound", f"{called}, does not exist in namespace {view.namespace}; create it"
        )
    if service.status.get("latestReadyRevisionName"):
        return None
    ready = condition(service.status, READY)
    why = ready.words if ready else _NOT_JUDGED
    return _not_routed("ServiceNotReady", f"{called}, has no ready revision: {why}{_service_hint(service)}")


def _service_hint(service: Resource) -> str:
    return f"; see kubectl get revisions -n {service.namespace} -l serving.knative.dev/service={service.name}"


def _routed_condition(tool: Tool, view: NamespaceView) -> Condition:
    listeners = view.listeners_for(tool.type)
    listeners_of_call = [listeners[name] for name in tool.routes]
    triggers = _join_names(tool.routes)
    if all(listener.catches_all for listener in listeners_of_call):
        message = f"only Triggers without a filter pass its calls ({triggers}), which may lead anywhere"
        return Condition(ROUTED, "True", "OnlyCatchAll", message)
    return Condition(ROUTED, "True", ROUTED, f"Broker {tool.broker}, Trigger {triggers}")


def _join_names(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - 3} more" if len(every) > 3 else ""
    return ", ".join(every[:3]) + more


def _not_routed(reason: str, message: str) -> Condition:
    return Condition(ROUTED, "False", reason, message)


ANSWERABLE = "Answerable"


def judge_answerable(tool: Tool, view: NamespaceView) -> Condition:
    """Return the condition, the same for every tool of one Broker whose replies have one attribute."""
    if tool.dispatch == "direct":
        return Condition(ANSWERABLE, "True", "Direct", "the reply comes in the answer to the call")
    attribute = "" if view.is_stamping(tool.broker) else tool.reply_attribute
    return view.judge_once_per_broker(
        f"{ANSWERABLE} {attribute}",
        tool.broker,
        lambda: _judge_broker_replies(tool.broker, view, attribute),
    )


def _judge_broker_replies(broker: str, view: NamespaceView, attribute: str) -> Condition:
    passing = view.reply_listeners(broker, attribute)
    to_shim = [one for one in passing if _leads_to_shim(one, view)]
    ready = reply_triggers(broker, view, attribute)
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
    what = f"replies of Broker {broker} with {attribute!r}" if attribute else f"replies of Broker {broker}"
    missing = f"no Trigger brings {what} to the shim"
    written = _missing_trigger(broker, view, attribute)
    unwritten = view.rules.unwritten
    if unwritten is not None and (problem := unwritten.find_reason(view.namespace, broker)):
        message = f"{missing}, and the operator cannot write it: {problem}; write {written}"
        return Condition(ANSWERABLE, "False", "ReplyTriggerNotWritten", message)
    cure = "the operator writes it now" if _is_written(broker, view) else f"write {written}"
    return Condition(ANSWERABLE, "False", "NoReplyTrigger", f"{missing}; {cure}")


def _is_written(broker: str, view: NamespaceView) -> bool:
    """Return True if the operator writes the reply Trigger of a Broker: no other one does the same work."""
    others = [
        one
        for one in view.reply_listeners(broker)
        if _leads_to_shim(one, view) and not is_managed(one.resource)
    ]
    return view.rules.unwritten is not None and broker in view.brokers and not others


def reply_triggers(broker: str, view: NamespaceView, attribute: str = "") -> list[Listener]:
    """Return the Triggers for a Broker's replies to the shim, by name. All of them are or were ready."""
    passing = view.reply_listeners(broker, attribute)
    return [one for one in passing if not one.not_ready and _leads_to_shim(one, view)]


def _leads_to_shim(listener: Listener, view: NamespaceView) -> bool:
    return same_place(view.subscriber_url(listener), view.rules.replies)


def _missing_trigger(broker: str, view: NamespaceView, attribute: str) -> str:
    """Return the missing reply Trigger as YAML in one line."""
    name = reply_trigger_name(broker)
    passes = reply_filter(view.class_of(broker), view.rules.reply_attribute)
    if attribute:
        name, passes = f"{name}-{attribute}", named_filter(attribute)
    spec = reply_trigger_spec(broker, view.rules.origin, passes)
    return (
        "{apiVersion: eventing.knative.dev/v1, kind: Trigger, "
        f"metadata: {{name: {name}, namespace: {view.namespace}}}, spec: {json.dumps(spec)}}}"
    )


REPLIES_ARRIVE = "RepliesArrive"


def judge_replies_arrive(tool: Tool, view: NamespaceView) -> Condition:
    """Return the condition, by the last probe of the tool's Broker."""
    if tool.dispatch == "direct":
        return Condition(REPLIES_ARRIVE, "True", "Direct", "the reply comes in the answer to the call")
    return view.judge_once_per_broker(REPLIES_ARRIVE, tool.broker, lambda: _judge_probe(tool.broker, view))


def _judge_probe(broker: str, view: NamespaceView) -> Condition:
    known = view.brokers.get(broker)
    arrive = None if known is None else known.replies_arrive
    if arrive is None:
        return Condition(REPLIES_ARRIVE, "Unknown", "NotProbed", f"no probe of Broker {broker} has ended yet")
    if arrive:
        return Condition(REPLIES_ARRIVE, "True", REPLIES_ARRIVE, f"a probe of Broker {broker} came back")
    names = _join_names(one.trigger.name for one in reply_triggers(broker, view)) or "for replies"
    message = (
        f"Broker {broker} took a probe, and no reply to it reached {view.rules.replies}, so calls end in "
        f"time-outs; check the filter of Trigger {names}, and whether the Broker's pods reach the shim"
    )
    return Condition(REPLIES_ARRIVE, "False", "RepliesLost", message)


def read_probe_result(status: str, reason: str) -> bool | None:
    """Return the result of the probe behind a stored condition, `None` without one."""
    return {("True", REPLIES_ARRIVE): True, ("False", "RepliesLost"): False}.get((status, reason))


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
    by_broker = view.judge_once_per_broker(
        DEAD_LETTERED, tool.broker, lambda: _judge_broker_delivery(tool.broker, broker, view)
    )
    deliveries = [_judge_trigger_delivery(listeners[name], view) or by_broker for name in tool.routes] or [
        by_broker
    ]
    return next((one for one in deliveries if one.status != "True"), deliveries[0])


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
