"""The condition Available: whether a call gets through at this moment.

It does not count for Ready: a tool whose route is as it was when it worked stays offered through
an outage of its Broker, and its calls wait.
"""

from collections.abc import Sequence

from beckon_contract.conditions import READY, Condition
from beckon_contract.routes import Listener
from beckon_contract.tools import Tool
from beckon_operator.judging.around import Around, BrokerView
from beckon_operator.judging.replying import reply_triggers

AVAILABLE = "Available"
_WAITS = "calls wait for it and are tried again within their deadline"


def judge_available(tool: Tool, around: Around, route: Sequence[Condition]) -> Condition:
    """Return the condition; `route` holds Routed and Answerable, and the first that is not True decides."""
    missing = next((one for one in route if one.status != "True"), None)
    if missing is not None:
        return Condition(AVAILABLE, missing.status, missing.reason, missing.message)
    if tool.dispatch == "direct":
        return Condition(AVAILABLE, "True", "Direct", "calls need no Broker")
    broker = around.brokers[tool.broker]
    outage = around.once_a_broker(AVAILABLE, tool.broker, lambda: _of_broker(tool.broker, broker, around))
    listeners = around.listeners(tool.type)
    unavailable = _all_unavailable([listeners[name] for name in tool.routes])
    # The Broker is named before its Triggers, which are not ready because it is not.
    if unavailable is None or outage.reason == "BrokerUnavailable":
        return outage
    message = f"Trigger {unavailable.trigger.name} is not ready for now ({unavailable.unavailable}); {_WAITS}"
    return Condition(AVAILABLE, "False", "TriggerUnavailable", message)


def _of_broker(name: str, broker: BrokerView, around: Around) -> Condition:
    """Return what all tools of a Broker share: the Broker itself, and the Trigger of replies."""
    if broker.ready is None or broker.ready.status != "True":
        why = broker.ready.words if broker.ready else f"no condition {READY}"
        message = f"Broker {name} is not ready for now ({why}); {_WAITS}"
        return Condition(AVAILABLE, "False", "BrokerUnavailable", message)
    unavailable = _all_unavailable(reply_triggers(name, around))
    if unavailable is not None:
        called = f"Trigger {unavailable.trigger.name}, which brings replies,"
        message = f"{called} is not ready for now ({unavailable.unavailable}); replies wait for it"
        return Condition(AVAILABLE, "False", "ReplyTriggerUnavailable", message)
    return Condition(AVAILABLE, "True", AVAILABLE, "Broker and Triggers are ready")


def _all_unavailable(listeners: Sequence[Listener]) -> Listener | None:
    """Return the first of some Triggers where all are unavailable, else `None`."""
    return listeners[0] if listeners and all(one.unavailable for one in listeners) else None
