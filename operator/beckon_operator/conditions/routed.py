"""The condition Routed: a call would reach the service.

Otherwise the condition gives the obstacle.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from beckon_contract.catalogue.builder import Entry
from beckon_contract.knative.addresses import Unaddressable
from beckon_contract.knative.delivery import Reference
from beckon_contract.knative.routes import Listener
from beckon_contract.kubernetes_objects import READY, Condition, Resource, condition
from beckon_contract.resources.call_routes import CallRoute, make_route
from beckon_contract.resources.tools import Tool
from beckon_operator.conditions.namespace_view import BrokerView, NamespaceView, is_knative_service

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
    named = _join_names(tool.routes)
    if all(listener.catches_all for listener in listeners_of_call):
        message = f"only Triggers without a filter pass its calls ({named}), which may lead anywhere"
        return Condition(ROUTED, "True", "OnlyCatchAll", message)
    return Condition(ROUTED, "True", ROUTED, f"Broker {tool.broker}, Trigger {named}")


def _join_names(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - 3} more" if len(every) > 3 else ""
    return ", ".join(every[:3]) + more


def _not_routed(reason: str, message: str) -> Condition:
    return Condition(ROUTED, "False", reason, message)
