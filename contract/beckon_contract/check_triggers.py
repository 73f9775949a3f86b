"""Errors and likely mistakes in Triggers and Brokers.

Errors are what Knative refuses.
"""

from collections.abc import Iterator

from beckon_contract.findings import Finding, error, errors, warning, warnings
from beckon_contract.resources import Resource
from beckon_contract.routes import BrokenTrigger, Listener, read_trigger
from beckon_contract.triggers import GROUP, InvalidResource, parse_broker

_LOOP = "replies of its own subscriber come back to it and can go round without end"
_CURE = "write spec.filter.attributes: {type: THE-TYPE}"
_SINK = "an undeliverable call shows only as a time-out"


def check_trigger(resource: Resource) -> Iterator[Finding]:
    """Yield errors and likely mistakes of a Trigger."""
    yield from _check_version(resource)
    found = read_trigger(resource)
    if isinstance(found, BrokenTrigger):
        yield from errors(resource, found.problems)
        return
    yield from warnings(resource, found.trigger.warnings)
    if found.catches_all:
        message = f"passes every event of the Broker, so {_LOOP}; {_CURE}"
        yield warning(resource, "spec.filter", message)
    delivery = found.trigger.delivery
    if delivery is not None and delivery.dead_letter is None:
        message = f"replaces the Broker's delivery whole and has no deadLetterSink, so {_SINK}; add one"
        yield warning(resource, "spec.delivery", message)


def check_broker(resource: Resource) -> Iterator[Finding]:
    """Yield errors and likely mistakes of a Broker."""
    yield from _check_version(resource)
    try:
        broker = parse_broker(resource)
    except InvalidResource as problem:
        yield from errors(resource, problem.problems)
        return
    yield from warnings(resource, broker.warnings)
    if broker.delivery.dead_letter is None:
        message = f"missing, so {_SINK}; name Beckon's shim"
        yield warning(resource, "spec.delivery.deadLetterSink", message)


def check_loop(listener: Listener, called_type: str) -> Iterator[Finding]:
    """Yield a warning if a tool's Trigger would pass replies.

    The type of a reply is taken to begin like that of the call.
    """
    reply_type = f"{called_type}.reply"
    reply = {"specversion": "1.0", "id": "reply", "type": reply_type, "source": "/tool", "replyid": "token"}
    if not listener.catches_all and listener.trigger.filter(reply):
        message = f"passes events of type {reply_type!r} too, so {_LOOP}; {_CURE}"
        yield warning(listener.resource, "spec.filters", message)


def _check_version(resource: Resource) -> Iterator[Finding]:
    if resource.version != "v1":
        message = f"{resource.api_version} is not served by Knative; write {GROUP}/v1"
        yield error(resource, "apiVersion", message)
