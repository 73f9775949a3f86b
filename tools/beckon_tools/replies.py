"""The answers to a call: reply events, and the data of a failure."""

import uuid
from datetime import UTC, datetime

import orjson

from beckon_contract.cloudevents import extensions
from beckon_contract.cloudevents.events import AttributeValue, CloudEvent
from beckon_contract.cloudevents.extensions import ACCEPTED, CAUSE, STATE, deliveries_attribute
from beckon_contract.failures import Reason, failure
from beckon_runtime.tracing import carried
from beckon_tools.declaration import AnyTool
from beckon_tools.deferred_results import NO_ANSWER_YET

# Travel from the call to its reply: the trace (CloudEvents distributed tracing extension), and
# the counters by which brokers and agents break loops.
_CARRIED = ("traceparent", "tracestate", "knativebrokerttl", *extensions.CARRIED)


def reply_event(
    tool: AnyTool, call: CloudEvent, data: bytes, correlation: tuple[str, str], deliveries: int = 1
) -> CloudEvent:
    """Build the reply to a call after a number of deliveries.

    `correlation` is the attribute to take from the call and the extension that returns its value; a call
    without it is answered as well, for other listeners. With `NO_ANSWER_YET` for data the reply says that
    the call is accepted.
    """
    taken, returned = correlation
    attributes = call.attributes()
    extensions: dict[str, AttributeValue] = {
        name: call.extensions[name] for name in _CARRIED if name in call.extensions
    }
    extensions |= carried()  # the reply belongs to the span in which the call was processed
    extensions |= deliveries_attribute(deliveries)
    extensions[CAUSE] = call.id
    if data == NO_ANSWER_YET:
        extensions[STATE] = ACCEPTED
    if taken in attributes:
        extensions[returned] = attributes[taken]
    return CloudEvent(
        id=str(uuid.uuid4()),
        source=tool.source,
        type=tool.reply_type,
        datacontenttype="application/json" if data else None,
        time=datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        data=data or None,
        extensions=extensions,
    )


def failure_data(reason: Reason, message: str) -> bytes:
    """Return the reply data for a failure."""
    return orjson.dumps(failure(reason, message))
